// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { Teller } from '../src/page/teller.js';
import type { INotifying } from '../src/page/teller.js';
import { english } from '../src/timeline/translator.js';

/** A browser whose user answers the question for permission with `answer`. */
class Browser {
  constructor(
    private readonly _answer: NotificationPermission,
    readonly isSecureContext = true
  ) {
    // eslint-disable-next-line @typescript-eslint/no-this-alias
    const browser = this;
    class FakeNotification {
      static permission: NotificationPermission = 'default';
      static requestPermission(): Promise<NotificationPermission> {
        browser.questions += 1;
        FakeNotification.permission = browser._answer;
        return Promise.resolve(browser._answer);
      }
      constructor(title: string, options: NotificationOptions = {}) {
        if (FakeNotification.permission === 'granted') {
          browser.told.push(`${title} ${options.body ?? ''}`.trim());
        }
      }
    }
    this.Notification = FakeNotification as unknown as typeof Notification;
  }

  Notification: typeof Notification;
  questions = 0;
  readonly told: string[] = [];
  readonly kept = new Map<string, string>();
  readonly sessionStorage = {
    getItem: (key: string) => this.kept.get(key) ?? null,
    setItem: (key: string, value: string) => void this.kept.set(key, value),
    removeItem: (key: string) => void this.kept.delete(key)
  };
}

function a(browser: INotifying, server = 'ada/gpu'): Teller {
  return new Teller(server, english, browser);
}

test('nobody is asked for permission, and nothing is told, before a click', () => {
  const browser = new Browser('granted');
  a(browser).hear('ready', '');
  assert.equal(browser.questions, 0);
  assert.deepEqual(browser.told, []);
});

test('a wish outlives a reload, belongs to one server and is granted once', async () => {
  const browser = new Browser('granted');
  assert.match(await a(browser).press(), /^The browser tells when/);
  const later = a(browser);
  assert.ok(later.isAwaited);
  assert.ok(!a(browser, 'ada/').isAwaited);
  later.hear('placed', '');
  assert.deepEqual(browser.told, []);
  later.hear('ready', 'Ready on gpu-17.');
  later.hear('ready', 'Ready on gpu-17.');
  assert.deepEqual(browser.told, ['Your server is ready. Ready on gpu-17.']);
  assert.ok(!a(browser).isAwaited);
});

test('a wish ends with its start, though nobody saw that end', async () => {
  const browser = new Browser('granted');
  const first = a(browser);
  first.about({ generation: 1 });
  await first.press();
  const reloaded = a(browser);
  reloaded.about({ generation: 1 });
  assert.ok(reloaded.isAwaited);
  // The page was closed, the start ended, and another one began.
  const next = a(browser);
  next.about({ generation: 2 });
  assert.ok(!next.isAwaited);
  next.hear('ready', '');
  assert.deepEqual(browser.told, []);
  assert.ok(!a(browser).isAwaited);
});

test('a wish before anything is known is for the start that is heard of', async () => {
  const browser = new Browser('granted');
  const early = a(browser);
  early.about(null);
  await early.press();
  early.about({ generation: 3 });
  assert.ok(early.isAwaited);
  const next = a(browser);
  next.about({ generation: 4 });
  assert.ok(!next.isAwaited);
});

test('an end before it was ready is told as well', async () => {
  const browser = new Browser('granted');
  const teller = a(browser);
  await teller.press();
  teller.hear('failed', 'Failed.');
  assert.deepEqual(browser.told, ['Your server did not start. Failed.']);
});

test('a wish can be taken back', async () => {
  const browser = new Browser('granted');
  const teller = a(browser);
  await teller.press();
  assert.match(await teller.press(), /will not tell/);
  teller.hear('ready', '');
  assert.deepEqual(browser.told, []);
});

test('what is in the way is said, each thing by itself', async () => {
  const refusing = new Browser('denied');
  assert.match(await a(refusing).press(), /does not let this page notify/);
  assert.ok(!a(refusing).isAwaited);

  const plain = new Browser('granted', false);
  assert.match(await a(plain).press(), /https/);
  assert.equal(plain.questions, 0);

  const { isSecureContext, sessionStorage } = new Browser('granted');
  const old: INotifying = { isSecureContext, sessionStorage };
  assert.match(await a(old).press(), /cannot notify/);

  const telephone = new Browser('granted');
  class Illegal {
    static readonly permission = 'default';
    constructor() {
      throw new TypeError('Illegal constructor');
    }
  }
  telephone.Notification = Illegal as unknown as typeof Notification;
  assert.match(await a(telephone).press(), /cannot notify/);
  assert.equal(telephone.questions, 0);
});

test('a permission that was taken back meanwhile stops no page', async () => {
  const browser = new Browser('granted');
  const teller = a(browser);
  await teller.press();
  Object.assign(browser.Notification, { permission: 'denied' });
  teller.hear('ready', '');
  assert.deepEqual(browser.told, []);
});

test('a browser that keeps nothing remembers a wish as long as the page', async () => {
  const browser = new Browser('granted');
  const forbid = () => {
    throw new DOMException('no', 'SecurityError');
  };
  Object.assign(browser.sessionStorage, {
    getItem: forbid,
    setItem: forbid,
    removeItem: forbid
  });
  const teller = a(browser);
  await teller.press();
  assert.ok(teller.isAwaited);
  teller.hear('ready', '');
  assert.equal(browser.told.length, 1);
  assert.ok(!teller.isAwaited);
});
