'use strict';

/** Resolves when the terminal has shown `text`; with all that it has shown until then. */
function shows(terminal, text) {
  let shown = '';
  return new Promise((resolve) => {
    const stop = terminal.onData((bytes) => {
      shown += new TextDecoder().decode(bytes);
      if (!shown.includes(text)) return;
      stop();
      resolve(shown);
    });
  });
}

module.exports = { shows };
