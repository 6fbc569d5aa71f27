// A web server that knows nothing of Airlock: it binds its port as it always does.
const http = require('http');

const server = http.createServer((request, response) => {
  if (request.url === '/health') return response.end('ok\n');
  response.end(`hello from pid ${process.pid}\n`);
});
server.listen(Number(process.env.PORT || 8081), '127.0.0.1');
process.on('SIGTERM', () => server.close(() => process.exit(0)));
