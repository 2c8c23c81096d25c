// Go's net/http. The backlog is not given: Go always asks for as much as the kernel allows.
package main

import (
	"log"
	"net"
	"net/http"
	"os"
)

func hello(response http.ResponseWriter, request *http.Request) {
	header := response.Header()
	header.Set("Content-Type", "text/plain")
	header.Set("Content-Length", "2")
	response.Write([]byte("OK"))
}

func main() {
	http.HandleFunc("/", hello)
	log.Fatal(http.ListenAndServe(net.JoinHostPort(os.Args[1], os.Args[2]), nil))
}
