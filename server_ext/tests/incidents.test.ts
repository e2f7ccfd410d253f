// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { incidents, untilNotice } from '../src/incidents.js';
import { status } from '../src/status.js';
import { Words } from '../src/timeline/words.js';
import { aTimeline, anAdmission, anEvent, at, TEN } from './builders.js';
import type { ITimeline } from '../src/timeline/contract.js';
import type { Standing } from '../src/answer.js';

const words = new Words(undefined, 'en');

function statusOf(
  timeline: ITimeline | null,
  seconds: number,
  standing: Standing = 'live'
): string {
  const model = {
    standing,
    timeline,
    cause: null,
    message: '',
    heardSecondsAgo: 1,
    isFollowing: true,
    isLive: true
  };
  return status(model, words, TEN + seconds * 1000, 10).text;
}

test('the end of a time limit is told once it is near, and not before', () => {
  const timeline = aTimeline(anAdmission(), { limits: { ends_at: at(3_600) } });
  assert.equal(untilNotice(timeline, TEN, 10), 3_000_000);
  assert.deepEqual(incidents(timeline, words, TEN, 10), []);
  const near = incidents(timeline, words, TEN + 3_060_000, 10);
  assert.equal(near.length, 1);
  assert.match(near[0]?.message ?? '', /ends at .+: its time limit/);
  const nearer = incidents(timeline, words, TEN + 3_500_000, 10);
  assert.equal(nearer[0]?.id, near[0]?.id);
});

test('who wants no notice of the end gets none', () => {
  const timeline = aTimeline(anAdmission(), { limits: { ends_at: at(3_600) } });
  assert.deepEqual(incidents(timeline, words, TEN + 3_500_000, 0), []);
});

test('a machine that is silent and returns is one incident that passes', () => {
  const silent = [...anAdmission(), anEvent(9, 400, 'unknown')];
  const [told] = incidents(aTimeline(silent), words, TEN, 10);
  assert.equal(told?.isOver, false);
  assert.match(told?.message ?? '', /gpu-17 does not answer/);
  const back = [...silent, anEvent(10, 460, 'ready', { kind: 'returned' })];
  const [over] = incidents(aTimeline(back), words, TEN, 10);
  assert.equal(over?.id, told?.id);
  assert.equal(over?.isOver, true);
});

test('a wish for what is held is told once, and not to who comes much later', () => {
  const wish = anEvent(9, 400, 'ready', {
    kind: 'note',
    explanation: { reason: 'release_wished', subject: 'grace' }
  });
  const timeline = aTimeline([...anAdmission(), wish]);
  const told = incidents(timeline, words, TEN + 500_000, 10);
  assert.deepEqual(
    told.map(({ type, message }) => [type, message]),
    [
      [
        'warning',
        'Somebody, grace, waits for what this server holds, and asks for it.'
      ]
    ]
  );
  assert.deepEqual(
    incidents(timeline, words, TEN + 600_000, 10)[0]?.id,
    told[0]?.id
  );
  assert.deepEqual(incidents(timeline, words, TEN + 4_100_000, 10), []);
  const other = { ...timeline, generation: 2 };
  assert.deepEqual(incidents(other, words, TEN + 500_000, 10), []);
  const over = aTimeline([...anAdmission(), wish, anEvent(10, 410, 'stopped')]);
  assert.deepEqual(
    incidents(over, words, TEN + 500_000, 10).map(({ id }) => id),
    ['01J8:1:end']
  );
});

test('that it ends unless something is computed is told for as long as it is so', () => {
  const soon = anEvent(9, 400, 'ready', {
    kind: 'note',
    explanation: { reason: 'idle_soon', requested: 600, unit: 'seconds' }
  });
  const events = [...anAdmission(), soon];
  const idle = aTimeline(events, { limits: { idle_ends: at(1_000) } });
  const [told] = incidents(idle, words, TEN + 500_000, 10);
  assert.equal(
    told?.message,
    'Nothing is computed here, and it ends if that lasts another 10m.'
  );
  assert.deepEqual(incidents(aTimeline(events), words, TEN + 500_000, 10), []);
});

test('an end is told with its reason', () => {
  const lost = [...anAdmission(), anEvent(9, 400, 'failed')];
  const [told] = incidents(
    aTimeline(lost, { explanation: { reason: 'machine_lost' } }),
    words,
    TEN,
    10
  );
  assert.equal(told?.type, 'error');
  assert.match(told?.message ?? '', /^This server failed\. \S/);
});

test('the status bar tells news first, then what is held, then the end', () => {
  const timeline = aTimeline(anAdmission(), { limits: { ends_at: at(3_600) } });
  assert.equal(statusOf(timeline, 200), '✓ Admitted in 3 min 12 s');
  assert.equal(statusOf(timeline, 900), '✓ gpu-large');
  assert.equal(statusOf(timeline, 3_060), '⚠ Ends in 9 min');
  assert.equal(statusOf(timeline, 3_700), '⚠ Time limit is over');
});

test('the status bar says what it does not know', () => {
  assert.equal(statusOf(aTimeline(), 200, 'away'), '? Admission: no answer');
  assert.equal(statusOf(null, 200, 'no_server'), '? Admission: no answer');
  assert.equal(statusOf(aTimeline(), 200, 'offline'), '? Admission: offline');
  assert.equal(statusOf(null, 200, 'no_permission'), '? Admission');
});

test('the status bar is silent where there is no Hub', () => {
  for (const standing of ['loading', 'no_hub', 'no_extension'] as const) {
    assert.equal(statusOf(null, 200, standing), '');
  }
});

test('the status bar follows the state', () => {
  const events = anAdmission();
  const waiting = aTimeline(events.slice(0, 2), { position: 2 });
  assert.equal(statusOf(waiting, 10), '● Waiting: 2 ahead');
  assert.equal(statusOf(aTimeline(events.slice(0, 4)), 170), '● Starting');
  const silent = aTimeline([...events, anEvent(9, 300, 'unknown')]);
  assert.equal(statusOf(silent, 310), '‖ Machine silent');
});

test('the promised and the likely start are told apart, with how many waits', () => {
  const likely = { early: at(300), late: at(900), samples: 40 };
  const lines = words.limits(
    { starts_by: at(3_600), likely },
    Date.parse(at(0))
  );
  assert.deepEqual(
    lines.map(line => line.key),
    ['starts', 'likely']
  );
  assert.match(lines[0]!.text, /^Starts no later than \d/);
  assert.match(lines[1]!.text, /half and nine in ten of 40 similar starts/);
});

test('a wait that outlasts what is likely says so', () => {
  const likely = { early: at(300), late: at(900), samples: 40 };
  const keys = (seconds: number, longer_than_usual = false) =>
    words
      .limits({ likely, longer_than_usual }, Date.parse(at(seconds)))
      .map(line => line.key);
  assert.deepEqual(keys(900), ['likely']);
  assert.deepEqual(keys(901), ['longer']);
  assert.deepEqual(keys(0, true), ['likely', 'longer']);
});
