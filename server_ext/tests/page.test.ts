// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';

import { localeOf } from '../src/locale.js';
import { Ticker } from '../src/ticker.js';

test('times are written in the application’s language, as its reader’s country does', () => {
  assert.equal(localeOf('en', ['de-DE', 'en-GB', 'en-US']), 'en-GB');
  assert.equal(localeOf('en', ['de-DE', 'de']), 'en');
  assert.equal(localeOf('pt_BR', ['pt-PT']), 'pt-BR');
  assert.equal(localeOf('de', ['en-GB']), 'de');
  assert.equal(localeOf(undefined, ['en-GB']), 'en-GB');
});

test('nothing ticks on a page that is out of sight', () => {
  mock.timers.enable({ apis: ['setInterval'] });
  const page = { visibilityState: 'visible' };
  Object.assign(globalThis, { document: page });
  let ticks = 0;
  const ticker = new Ticker(() => (ticks += 1), 1_000);
  ticker.start();
  mock.timers.tick(2_000);
  assert.equal(ticks, 3);
  page.visibilityState = 'hidden';
  mock.timers.tick(5_000);
  assert.equal(ticks, 3);
  page.visibilityState = 'visible';
  mock.timers.tick(1_000);
  assert.equal(ticks, 4);
  ticker.stop();
  mock.timers.tick(5_000);
  assert.equal(ticks, 4);
  mock.timers.reset();
});
