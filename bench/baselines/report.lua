-- What wrk counted, as one line of JSON: the last that it prints.
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '{"elapsed_us": %d, "requests": %d, "bytes": %d, "connect": %d, "read": %d, "write": %d, '
      .. '"status": %d, "timeout": %d, "p50_us": %d, "p99_us": %d}\n',
    summary.duration, summary.requests, summary.bytes, errors.connect, errors.read, errors.write,
    errors.status, errors.timeout, latency:percentile(50), latency:percentile(99)))
end
