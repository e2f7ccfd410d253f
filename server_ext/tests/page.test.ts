// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import assert from 'node:assert/strict';
import { mock, test } from 'node:test';

import { localeOf } from '../src/locale.js';
import { LiveTimeline } from '../src/page/live.js';
import { Patience } from '../src/patience.js';
import { Ticker } from '../src/ticker.js';
import { aTimeline, anEvent } from './builders.js';

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

test('empty rows are shown after three tenths of a second, not at once', () => {
  const patience = new Patience();
  assert.ok(!patience.isOver(true, 1_000));
  assert.ok(!patience.isOver(true, 1_299));
  assert.ok(patience.isOver(true, 1_300));
  assert.ok(!patience.isOver(false, 1_400));
  assert.ok(!patience.isOver(true, 9_000));
  assert.ok(patience.isOver(true, 9_300));
});

test('a tab in the background tells in its title how many are ahead', () => {
  mock.timers.enable({ apis: ['setInterval'] });
  const page = {
    visibilityState: 'hidden',
    // As the server wrote it for whoever has no script.
    title: '(2 ahead) Starting your server',
    querySelector: () => ({ textContent: ' Starting your server ' })
  };
  Object.assign(globalThis, { document: page, addEventListener: () => {} });
  const waiting = [anEvent(1, 0, 'queued')];
  const live = new LiveTimeline({
    element: {} as HTMLElement,
    document: aTimeline(waiting, { position: 2 }),
    url: ''
  });
  assert.equal(page.title, '(2 ahead) Starting your server');
  live.take(aTimeline(waiting, { position: 1 }));
  assert.equal(page.title, '(1 ahead) Starting your server');
  live.take(aTimeline());
  assert.equal(
    page.title,
    'Ready on gpu-17, admitted in 3 min 12 s. – Starting your server'
  );
  mock.timers.reset();
});
