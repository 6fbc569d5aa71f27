// A terminal in a browser: node server.mjs [PORT], with xterm.js beside it (npm install @xterm/xterm @xterm/addon-fit).
// The page talks to the API itself, with the token typed there; the API has to allow it:
//   api: { origins: ["http://127.0.0.1:3000"] }
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';

const port = Number(process.argv[2] ?? 3000);
const require = createRequire(import.meta.url);
const page = readFileSync(new URL('page.html', import.meta.url), 'utf8')
  .replaceAll('API_URL', process.env.AIRLOCK_URL ?? 'http://127.0.0.1:8080');
const files = {
  '/': ['text/html', () => page],
  '/xterm.js': ['text/javascript', () => readFileSync(require.resolve('@xterm/xterm'))],
  '/addon-fit.js': ['text/javascript', () => readFileSync(require.resolve('@xterm/addon-fit'))],
  '/xterm.css': ['text/css', () => readFileSync(require.resolve('@xterm/xterm/css/xterm.css'))],
};

createServer((request, response) => {
  const [type, content] = files[request.url] ?? [];
  if (type === undefined) return response.writeHead(404).end();
  response.writeHead(200, { 'Content-Type': type }).end(content());
}).listen(port, '127.0.0.1', () => console.log(`http://127.0.0.1:${port}`));
