'use strict';

const GUID = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const CONTINUATION = 0, BINARY = 2, CLOSE = 8, PING = 9, PONG = 10;
const FINAL = 0x80, RESERVED = 0x70, MASKED = 0x80;
const LARGEST_CONTROL = 125;
const LARGEST_MESSAGE = 1 << 20; // the API's have 64 KiB and what tells about them
const CLOSE_TIME = 5000; // ms, for the other side to answer a close

/** Frames of a server (RFC 6455, 5.2), as they arrive in pieces: throws { closeCode } for what is none. */
class Frames {
  #parts = [];
  #size = 0;

  /** The whole frames that there are now: { opcode, isFinal, payload }. */
  *add(bytes) {
    this.#parts.push(bytes);
    this.#size += bytes.length;
    for (let frame; (frame = this.#next()); ) yield frame;
  }

  #next() {
    if (this.#size < 2) return undefined;
    const bytes = this.#joined();
    const opcode = bytes[0] & 15, isFinal = (bytes[0] & FINAL) !== 0;
    if (bytes[0] & RESERVED) throw wrong(1002, 'a reserved bit is set');
    if (bytes[1] & MASKED) throw wrong(1002, 'a frame of the server is masked');
    const short = bytes[1] & 127;
    if (opcode >= 8 && (!isFinal || short > LARGEST_CONTROL)) throw wrong(1002, 'a control frame is too long');
    const head = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (bytes.length < head) return undefined;
    const length = short < 126 ? short : short === 126 ? bytes.readUInt16BE(2) : Number(bytes.readBigUInt64BE(2));
    if (length > LARGEST_MESSAGE) throw wrong(1009, 'a message is too long');
    if (bytes.length < head + length) return undefined;
    this.#parts = [bytes.subarray(head + length)];
    this.#size -= head + length;
    return { opcode, isFinal, payload: bytes.subarray(head, head + length) };
  }

  #joined() {
    if (this.#parts.length > 1) this.#parts = [Buffer.concat(this.#parts)];
    return this.#parts[0];
  }
}

/** Messages that frames are parts of (5.4). */
class Messages {
  #parts = [];
  #size = 0;
  #isOpen = false;

  /** The message that ends with this frame, if one does. */
  add({ opcode, isFinal, payload }) {
    if ((opcode === CONTINUATION) !== this.#isOpen) throw wrong(1002, 'frames of messages are mixed up');
    if (opcode !== CONTINUATION && opcode !== BINARY) throw wrong(opcode === 1 ? 1003 : 1002, 'expected a binary message');
    this.#parts.push(payload);
    this.#size += payload.length;
    if (this.#size > LARGEST_MESSAGE) throw wrong(1009, 'a message is too long');
    this.#isOpen = !isFinal;
    if (!isFinal) return undefined;
    const message = Uint8Array.from(Buffer.concat(this.#parts)); // a copy of its own
    this.#parts = [];
    this.#size = 0;
    return message;
  }
}

const wrong = (closeCode, message) => Object.assign(new Error(message), { closeCode });

/** May be sent in a close frame (7.4). */
const isCloseCode = (code) =>
  (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999);

/** The close code of a close frame, which may have none (1005). */
function closeCodeOf(payload) {
  if (payload.length === 0) return 1005;
  if (payload.length === 1 || !isCloseCode(payload.readUInt16BE(0))) throw wrong(1002, 'a close frame has no valid code');
  try {
    new TextDecoder('utf-8', { fatal: true }).decode(payload.subarray(2));
  } catch {
    throw wrong(1007, 'the reason of a close frame is not UTF-8');
  }
  return payload.readUInt16BE(0);
}

/** A frame of a client: always masked (5.3). */
function frameOf(opcode, payload) {
  const { randomFillSync } = require('node:crypto');
  const long = payload.length > 0xffff ? 8 : payload.length >= 126 ? 2 : 0;
  const frame = Buffer.allocUnsafe(2 + long + 4 + payload.length);
  frame[0] = FINAL | opcode;
  frame[1] = MASKED | (long === 8 ? 127 : long === 2 ? 126 : payload.length);
  if (long === 2) frame.writeUInt16BE(payload.length, 2);
  if (long === 8) frame.writeBigUInt64BE(BigInt(payload.length), 2);
  const mask = randomFillSync(frame.subarray(2 + long, 6 + long));
  const body = frame.subarray(6 + long);
  for (let i = 0; i < body.length; i++) body[i] = payload[i] ^ mask[i & 3];
  return frame;
}

/**
 * What a terminal needs of a WebSocket, over a UNIX socket, where the platform's has no address for one: binary
 * messages, and the handlers onopen, onmessage, onerror, onclose, as the platform calls them. Node only.
 */
class UnixWebSocket {
  #request;
  #socket;
  #frames = new Frames();
  #messages = new Messages();
  #code = 1006; // nobody has said why
  #isClosing = false;
  #isOver = false;
  #timer;

  constructor(socketPath, path, protocols) {
    const { createHash, randomBytes } = require('node:crypto');
    const key = randomBytes(16).toString('base64');
    this.#request = require('node:http').request({
      socketPath, path, agent: false,
      headers: {
        'Connection': 'Upgrade', 'Upgrade': 'websocket', 'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': key,
        'Sec-WebSocket-Protocol': protocols.join(', '),
      },
    });
    const accept = createHash('sha1').update(key + GUID).digest('base64');
    this.#request.on('upgrade', (answer, socket, head) => {
      const { headers } = answer;
      const isRight = headers.upgrade?.toLowerCase() === 'websocket' && headers['sec-websocket-accept'] === accept &&
        protocols.includes(headers['sec-websocket-protocol']) && !headers['sec-websocket-extensions'];
      if (isRight && !this.#isClosing) return this.#open(socket, head);
      socket.destroy();
      this.#end(new Error('that is no answer to a WebSocket'));
    });
    this.#request.on('response', (answer) => {
      this.#request.destroy(); // nothing else is asked for there
      this.#end(new Error(`HTTP ${answer.statusCode}`));
    });
    this.#request.on('error', (error) => this.#end(error));
    this.#request.end();
  }

  send(message) {
    if (!this.#isClosing && !this.#isOver) this.#socket.write(frameOf(BINARY, message));
  }

  /** onclose is called when the other side has answered, or does not. */
  close(code = 1000) {
    if (this.#isClosing || this.#isOver) return;
    this.#isClosing = true;
    if (!this.#socket) return void this.#request.destroy();
    this.#sendClose(code);
    this.#expectEnd();
  }

  #open(socket, head) {
    this.#socket = socket;
    socket.setTimeout(0);
    socket.on('error', () => {}); // a close follows
    socket.on('close', () => this.#end());
    socket.on('data', (bytes) => this.#take(bytes));
    this.onopen?.({});
    if (head.length > 0) this.#take(head);
  }

  #take(bytes) {
    try {
      for (const frame of this.#frames.add(bytes)) {
        if (this.#isOver) return;
        this.#obey(frame);
      }
    } catch (error) {
      if (error.closeCode === undefined) throw error;
      this.#giveUp(error.closeCode);
    }
  }

  #obey(frame) {
    if (frame.opcode === PING) {
      if (!this.#isClosing) this.#socket.write(frameOf(PONG, frame.payload));
    } else if (frame.opcode === CLOSE) {
      this.#code = closeCodeOf(frame.payload);
      if (!this.#isClosing) this.#sendClose(this.#code === 1005 ? undefined : this.#code);
      this.#isClosing = true;
      this.#socket.end();
      this.#expectEnd();
    } else if (frame.opcode !== PONG) {
      if (frame.opcode > BINARY) throw wrong(1002, 'a frame of no known kind');
      const message = this.#messages.add(frame);
      if (message && !this.#isClosing) this.onmessage?.({ data: message.buffer });
    }
  }

  /** The other side does not speak as it should. */
  #giveUp(code) {
    if (!this.#isClosing) this.#sendClose(code);
    this.#isClosing = true;
    this.#socket.destroySoon();
    this.#end();
  }

  #sendClose(code) {
    const payload = Buffer.alloc(code === undefined ? 0 : 2);
    if (code !== undefined) payload.writeUInt16BE(code);
    this.#socket.write(frameOf(CLOSE, payload));
  }

  #expectEnd() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#socket.destroy(), CLOSE_TIME);
    this.#timer.unref();
  }

  #end(error) {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#timer);
    if (error) this.onerror?.({ error });
    this.onclose?.({ code: this.#code });
  }
}

module.exports = { UnixWebSocket };
