'use strict';

const http = require('node:http');

const [host, port, backlog] = process.argv.slice(2);

http
  .createServer((request, response) => {
    response.writeHead(200, { 'Content-Type': 'text/plain', 'Content-Length': 2 });
    response.end('OK');
  })
  .listen({ host, port: Number(port), backlog: Number(backlog) });
