// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import type {
  IAnswer,
  IClock,
  IQuestion,
  IReply,
  ISource
} from '../src/answer.js';
import { Signal } from '@lumino/signaling';

import type { IIncident } from '../src/incidents.js';
import { TimelineModel } from '../src/model.js';
import { Notifier } from '../src/notifier.js';
import { Preferences } from '../src/preferences.js';
import { canTryAgain, heard, notice } from '../src/standing.js';
import { english } from '../src/timeline/translator.js';
import { Words } from '../src/timeline/words.js';
import { aTimeline, anAdmission, anAnswer, anEvent, TEN } from './builders.js';

/** A clock that stands still until a test advances it. */
class ManualClock implements IClock {
  now(): number {
    return this._now;
  }

  after(milliseconds: number, callback: () => void): () => void {
    const timer = { at: this._now + milliseconds, callback };
    this._timers.add(timer);
    return () => this._timers.delete(timer);
  }

  /** Let time pass, and everything that it sets off happen. */
  async advance(milliseconds: number): Promise<void> {
    const end = this._now + milliseconds;
    for (;;) {
      await settled();
      const next = [...this._timers]
        .filter(timer => timer.at <= end)
        .sort((one, other) => one.at - other.at)[0];
      if (!next) {
        this._now = end;
        return;
      }
      this._timers.delete(next);
      this._now = Math.max(this._now, next.at);
      next.callback();
    }
  }

  // A browser's clock that is an hour off.
  private _now = TEN + 3_600_000;
  private readonly _timers = new Set<{ at: number; callback: () => void }>();
}

async function settled(): Promise<void> {
  await new Promise(resolve => setImmediate(resolve));
}

/** A server that answers each question when the test says so. */
class ScriptedServer implements ISource {
  ask(question: IQuestion): Promise<IReply> {
    return new Promise((resolve, reject) => {
      this.questions.push({ ...question, resolve, reject });
      question.signal.addEventListener('abort', () =>
        reject(new DOMException('aborted', 'AbortError'))
      );
    });
  }

  get last() {
    const question = this.questions.at(-1);
    assert.ok(question);
    return question;
  }

  answer(answer: IAnswer, etag = '"1"'): void {
    this.last.resolve({ status: 200, etag, answer });
  }

  refuse(status: number): void {
    this.last.resolve({ status, etag: null, answer: null });
  }

  readonly questions: (IQuestion & {
    resolve: (reply: IReply) => void;
    reject: (reason: unknown) => void;
  })[] = [];
}

function setUp() {
  const clock = new ManualClock();
  const server = new ScriptedServer();
  return { clock, server, model: new TimelineModel(server, clock) };
}

/** A model that somebody looks at and that has its first answer. */
async function following(answer = anAnswer()) {
  const parts = setUp();
  parts.model.watch(parts, true);
  await parts.clock.advance(0);
  parts.server.answer(answer);
  await parts.clock.advance(0);
  return parts;
}

test('one question is asked at the start, and none while nobody looks', async () => {
  const { clock, server, model } = setUp();
  model.start();
  await clock.advance(0);
  assert.equal(server.last.waitSeconds, 0);
  server.answer(anAnswer());
  await clock.advance(3_600_000);
  assert.equal(server.questions.length, 1);
  assert.equal(model.standing, 'live');
});

test('who does not look yet takes nobody’s question away', async () => {
  const { clock, server, model } = setUp();
  model.start();
  model.watch(model, false);
  await clock.advance(0);
  // The status item looks at the clock while a slow server thinks of its first answer.
  model.watch(model, false);
  model.watch(server, true);
  model.watch(server, false);
  await clock.advance(0);
  server.answer(anAnswer());
  await clock.advance(0);
  assert.equal(model.standing, 'live');
  assert.equal(server.questions.length, 1);
});

test('while somebody looks one held-back question follows another', async () => {
  const { clock, server, model } = await following();
  assert.equal(server.questions.length, 2);
  assert.deepEqual(
    [server.last.waitSeconds, server.last.etag, server.last.after],
    [25, '"1"', 8]
  );
  const silent = anEvent(9, 300, 'unknown', { machine: 'gpu-17' });
  server.answer(anAnswer(aTimeline([silent], { state: 'unknown' })), '"2"');
  await clock.advance(0);
  assert.equal(model.timeline?.events?.length, 9);
  assert.equal(server.last.etag, '"2"');
});

test('looking away ends the question, and looking again asks at once', async () => {
  const { clock, server, model } = await following();
  const held = server.last;
  model.setVisible(false);
  assert.ok(held.signal.aborted);
  await clock.advance(3_600_000);
  assert.equal(server.questions.length, 2);
  model.setVisible(true);
  await clock.advance(0);
  assert.equal(server.questions.length, 3);
});

test('a server that has ended is not asked any more', async () => {
  const ended = aTimeline([...anAdmission(), anEvent(9, 300, 'stopped')]);
  const { clock, server, model } = await following(anAnswer(ended));
  await clock.advance(3_600_000);
  assert.equal(server.questions.length, 1);
  assert.equal(model.isLive, false);
});

test('only where nothing changes by itself is there a way to ask again', async () => {
  const { clock, server, model } = await following();
  assert.equal(canTryAgain(model), false);
  const over = [...anAdmission(), anEvent(9, 400, 'stopped')];
  server.answer(anAnswer(aTimeline(over)), '"2"');
  await clock.advance(0);
  assert.equal(canTryAgain(model), true);
  model.refresh();
  await clock.advance(0);
  server.answer(anAnswer(null, { standing: 'away' }));
  await clock.advance(0);
  assert.equal(canTryAgain(model), true);
});

test('a server without a Hub is asked once', async () => {
  const none = anAnswer(null, { standing: 'no_hub' });
  const { clock, server, model } = await following(none);
  await clock.advance(3_600_000);
  assert.equal(server.questions.length, 1);
  assert.match(notice(english, model), /not started by a JupyterHub/);
});

test('nobody answering is retried ever more slowly, and the last data stay', async () => {
  const { clock, server, model } = await following();
  const gaps: number[] = [];
  for (let failure = 0; failure < 8; failure += 1) {
    server.last.reject(new TypeError('Failed to fetch'));
    const began = clock.now();
    const asked = server.questions.length;
    while (server.questions.length === asked) {
      await clock.advance(250);
    }
    gaps.push(clock.now() - began);
  }
  assert.ok(gaps[0] !== undefined && gaps[0] <= 1_250);
  assert.ok(gaps.every(gap => gap <= 30_250));
  assert.ok((gaps.at(-1) ?? 0) >= 15_000);
  assert.equal(model.standing, 'no_server');
  assert.equal(model.timeline?.state, 'ready');
});

test('the first answer after an absence clears it and is followed at once', async () => {
  const { clock, server, model } = await following();
  server.last.reject(new TypeError('Failed to fetch'));
  await clock.advance(2_000);
  // What was known may be stale: everything is asked anew.
  assert.equal(server.last.etag, null);
  server.answer(anAnswer(), '"3"');
  await clock.advance(0);
  assert.equal(model.standing, 'live');
  assert.equal(server.last.waitSeconds, 25);
});

test('a question that is never answered is given up', async () => {
  const { clock, server, model } = await following();
  await clock.advance(39_999);
  assert.equal(model.standing, 'live');
  await clock.advance(2);
  assert.ok(server.questions[1]?.signal.aborted);
  assert.equal(model.standing, 'no_server');
});

test('how long ago the controller was heard is honest', async () => {
  const { clock, server, model } = await following(
    anAnswer(aTimeline(), { heard_seconds_ago: 5 })
  );
  await clock.advance(10_000);
  assert.equal(heard(english, model), 'live · heard 15 s ago');
  // Unchanged: the controller has answered meanwhile.
  server.refuse(304);
  await clock.advance(0);
  assert.equal(model.heardSecondsAgo, 0);
  server.answer(
    anAnswer(aTimeline(), {
      standing: 'away',
      cause: 'unreachable',
      heard_seconds_ago: 40
    })
  );
  await clock.advance(0);
  assert.equal(heard(english, model), 'Last heard 40 s ago · trying again');
  // Unchanged: it is still away.
  server.refuse(304);
  await clock.advance(5_000);
  assert.equal(heard(english, model), 'Last heard 45 s ago · trying again');
});

test('offline nothing is asked, and back online at once', async () => {
  const { clock, server, model } = await following();
  model.setOnline(false);
  assert.equal(notice(english, model), 'You are offline.');
  await clock.advance(600_000);
  assert.equal(server.questions.length, 2);
  model.setOnline(true);
  await clock.advance(0);
  assert.equal(server.questions.length, 3);
});

test('times are told by the controller’s clock, not by the browser’s', async () => {
  const { clock, model } = await following(
    anAnswer(aTimeline(), { heard_seconds_ago: 2 })
  );
  await clock.advance(3_000);
  assert.equal(model.now, TEN + 205_000);
});

test('a visitor who may not look is told so, and asks no more', async () => {
  const { clock, server, model } = setUp();
  model.watch(server, true);
  await clock.advance(0);
  server.refuse(403);
  await clock.advance(3_600_000);
  assert.equal(server.questions.length, 1);
  assert.match(notice(english, model), /its owner’s alone/);
});

test('a server without our extension says which one is missing', async () => {
  const { clock, server, model } = setUp();
  model.start();
  await clock.advance(0);
  server.refuse(404);
  await clock.advance(0);
  assert.match(notice(english, model), /“fleet_lab” is not enabled/);
});

test('a server that the Hub does not know for a while is asked again', async () => {
  const { clock, server, model } = await following();
  server.refuse(404);
  await clock.advance(0);
  assert.equal(model.standing, 'no_server');
  assert.equal(model.timeline?.state, 'ready');
  await clock.advance(2_000);
  server.answer(anAnswer(), '"4"');
  await clock.advance(0);
  assert.equal(model.standing, 'live');
});

test('another server’s timeline disappears when the token proves to be another’s', async () => {
  const { clock, server, model } = await following();
  server.answer(
    anAnswer(null, { standing: 'no_permission', cause: 'other_server' })
  );
  await clock.advance(0);
  assert.equal(model.timeline, null);
  assert.match(notice(english, model), /belongs to another server/);
});

test('a disposed model asks no more', async () => {
  const { clock, server, model } = await following();
  model.dispose();
  await clock.advance(600_000);
  assert.equal(server.questions.length, 2);
});

test('a timeline of another workload is asked for as a whole', async () => {
  const { clock, server, model } = await following();
  const other = aTimeline(anAdmission(), { workload: 'another' });
  server.answer(anAnswer({ ...other, events: [] }));
  await clock.advance(0);
  assert.deepEqual([server.last.after, server.last.waitSeconds], [0, 0]);
  server.answer(anAnswer(other));
  await clock.advance(0);
  assert.equal(model.timeline?.workload, 'another');
  assert.equal(model.timeline?.events?.length, 8);
});

test('a lost machine is told where there is neither a status bar nor a panel', async () => {
  const { clock, server, model } = setUp();
  const told: IIncident[] = [];
  const teller = {
    tell: (incident: IIncident) => String(told.push(incident)),
    retell: () => undefined
  };
  const fleet = { model, words: new Words(), preferences: new Preferences() };
  new Notifier(fleet, teller, clock);
  await clock.advance(0);
  assert.equal(server.questions.length, 0, 'the start is not delayed');
  model.start();
  await clock.advance(0);
  server.answer(anAnswer());
  await clock.advance(0);
  assert.equal(server.questions.length, 2);
  const silent = [...anAdmission(), anEvent(9, 400, 'unknown')];
  server.answer(anAnswer(aTimeline(silent)), '"2"');
  await clock.advance(0);
  assert.deepEqual(
    told.map(incident => incident.type),
    ['warning']
  );
});

test('who wants no notifications is not asked for', async () => {
  const { clock, server, model } = setUp();
  const values = { ...new Preferences().values, notifications: false };
  const preferences = {
    values,
    changed: new Signal<Preferences, void>({} as Preferences)
  };
  const fleet = {
    model,
    words: new Words(),
    preferences: preferences as unknown as Preferences
  };
  const silent = { tell: () => '', retell: () => undefined };
  new Notifier(fleet, silent, clock);
  model.start();
  await clock.advance(0);
  server.answer(anAnswer());
  await clock.advance(60_000);
  assert.equal(server.questions.length, 1);
});
