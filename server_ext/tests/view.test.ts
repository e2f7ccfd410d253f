// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { clock, duration } from '../src/timeline/amounts.js';
import { merge } from '../src/timeline/merge.js';
import { english } from '../src/timeline/translator.js';
import { view } from '../src/timeline/view.js';
import type { IView } from '../src/timeline/view.js';
import { Words } from '../src/timeline/words.js';
import { aTimeline, anAdmission, anEvent, TEN } from './builders.js';

function statuses(shown: IView): string {
  return shown.steps.map(step => step.status).join(' ');
}

function seconds(shown: IView): (number | null)[] {
  return shown.steps.map(step => step.seconds);
}

test('an admission is told in five phases with what each took', () => {
  const shown = view(aTimeline(), TEN + 900_000);
  assert.equal(statuses(shown), 'done done done done done');
  assert.deepEqual(seconds(shown), [0, 160, 4, 28, null]);
  assert.equal(shown.totalSeconds, 192);
  assert.equal(shown.waitingSeconds, 160);
  assert.equal(shown.startingSeconds, 32);
});

test('only the newest state of each piece of work is shown', () => {
  const starting = view(aTimeline(), TEN).steps[3];
  assert.deepEqual(starting?.progress, [
    { step: 'install_packages', done: 40, total: 40 }
  ]);
});

test('a step that is under way grows with the clock, the others do not', () => {
  const waiting = aTimeline(anAdmission().slice(0, 2), { machine: null });
  const early = view(waiting, TEN + 10_000);
  const late = view(waiting, TEN + 70_000);
  assert.equal(statuses(late), 'done now todo todo todo');
  assert.deepEqual(seconds(early), [0, 10, null, null, null]);
  assert.deepEqual(seconds(late), [0, 70, null, null, null]);
});

test('a clock that is behind never gives a negative time', () => {
  const waiting = aTimeline(anAdmission().slice(0, 2));
  assert.deepEqual(seconds(view(waiting, TEN - 60_000)).slice(0, 2), [0, 0]);
});

test('a machine that hands the workload back makes it wait a second time', () => {
  const events = [
    ...anAdmission().slice(0, 3),
    anEvent(4, 170, 'queued', { explanation: { reason: 'agent_rejected' } })
  ];
  const shown = view(aTimeline(events), TEN + 200_000);
  assert.equal(statuses(shown), 'done now todo todo todo');
  assert.equal(shown.steps[1]?.seconds, 190);
  assert.equal(shown.steps[1]?.explanation?.reason, 'agent_rejected');
});

test('a start that fails fails in the phase that it had reached', () => {
  const events = [
    ...anAdmission().slice(0, 4),
    anEvent(5, 190, 'failed', { explanation: { reason: 'disk_full' } })
  ];
  const shown = view(aTimeline(events), TEN + 900_000);
  assert.equal(statuses(shown), 'done done done failed todo');
  assert.equal(shown.steps[3]?.seconds, 26);
  assert.equal(shown.steps[3]?.explanation?.reason, 'disk_full');
});

test('a refusal ends the first phase', () => {
  const events = [
    anEvent(1, 0, 'requested'),
    anEvent(2, 0, 'refused', { explanation: { reason: 'not_in_audience' } })
  ];
  const shown = view(aTimeline(events), TEN);
  assert.equal(statuses(shown), 'failed todo todo todo todo');
});

test('a machine that goes silent during a start holds the phase', () => {
  const events = [...anAdmission().slice(0, 4), anEvent(5, 190, 'unknown')];
  const shown = view(aTimeline(events), TEN + 300_000);
  assert.equal(statuses(shown), 'done done done held todo');
});

test('what came after ready is told apart and takes nothing of the admission', () => {
  const events = [
    ...anAdmission(),
    anEvent(9, 400, 'unknown', { machine: 'gpu-17' }),
    anEvent(10, 460, 'ready', { kind: 'returned' }),
    anEvent(11, 500, 'stopping')
  ];
  const shown = view(aTimeline(events), TEN + 900_000);
  assert.equal(statuses(shown), 'done done done done done');
  assert.deepEqual(
    shown.since.map(event => event.kind),
    ['silent', 'returned', 'stopping']
  );
  assert.equal(shown.totalSeconds, 192);
});

test('an earlier start is told as one line, and its time is not counted', () => {
  const first = [
    anEvent(1, -900, 'requested'),
    anEvent(2, -890, 'ready'),
    anEvent(3, -500, 'stopped', { explanation: { reason: 'time_limit' } })
  ];
  const second = anAdmission().map(event => ({
    ...event,
    seq: event.seq + 10,
    generation: 2
  }));
  const shown = view(
    aTimeline([...first, ...second], { generation: 2 }),
    TEN + 900_000
  );
  assert.equal(shown.totalSeconds, 192);
  assert.equal(shown.runs.length, 1);
  assert.equal(shown.runs[0]?.admittedSeconds, 10);
  assert.equal(shown.runs[0]?.outcome, 'stopped');
});

test('without the older steps no time is made up', () => {
  const events = anAdmission().slice(6);
  const shown = view(aTimeline(events, { truncated: true }), TEN + 900_000);
  assert.equal(statuses(shown), 'done done done done done');
  assert.deepEqual(seconds(shown), [null, null, null, 12, null]);
  assert.equal(shown.totalSeconds, null);
});

test('events are told in the order of their numbers, whatever the clocks say', () => {
  const events = [...anAdmission()].reverse();
  const shown = view(aTimeline(events, { state: 'ready' }), TEN);
  assert.equal(shown.totalSeconds, 192);
});

test('a state and a kind of a newer controller do not break the phases', () => {
  const events = [
    ...anAdmission().slice(0, 3),
    { ...anEvent(4, 170, 'placed'), state: 'dreaming', kind: 'dreamt' }
  ] as ReturnType<typeof anAdmission>;
  const shown = view(aTimeline(events, { state: 'placed' }), TEN + 180_000);
  assert.equal(statuses(shown), 'done done now todo todo');
});

test('no events at all give five rows and no number', () => {
  const shown = view(aTimeline([], { phase: 'asked' }), TEN);
  assert.equal(statuses(shown), 'now todo todo todo todo');
  assert.equal(shown.totalSeconds, null);
});

test('newer events are added, and a document of another workload replaces all', () => {
  const known = aTimeline(anAdmission().slice(0, 5));
  const both = merge(known, aTimeline(anAdmission().slice(4)));
  assert.deepEqual(
    both.events?.map(event => event.seq),
    [1, 2, 3, 4, 5, 6, 7, 8]
  );
  const other = aTimeline([], { workload: 'another' });
  assert.equal(merge(known, other), other);
});

test('durations keep their two largest units', () => {
  const cases: [number | null, string][] = [
    [0, '0 s'],
    [59.9, '59 s'],
    [192, '3 min 12 s'],
    [7_500, '2 h 5 min'],
    [90_000, '1 day 1 h'],
    [180_000, '2 days 2 h'],
    [-5, '0 s'],
    [Number.NaN, '—'],
    [null, '—']
  ];
  for (const [length, expected] of cases) {
    assert.equal(duration(english, length), expected);
  }
});

test('a moment of another day is told with its day', () => {
  const noon = new Date(2026, 10, 29, 12).getTime();
  const hours = (count: number) => noon + count * 3_600_000;
  assert.equal(clock(hours(1), noon, 'en-GB'), '13:00:00');
  assert.equal(clock(hours(24), noon, 'en-GB'), '30 Nov, 12:00');
  assert.equal(clock(hours(24 * 60), noon, 'en-GB'), '28 Jan 2027, 12:00');
  const words = new Words(undefined, 'en-GB');
  const ends_by = new Date(hours(48)).toISOString();
  const holders = [{ workload: 'w0', owner: 'grace', ends_by }];
  assert.match(
    words.why({ reason: 'metal_busy', holders }, noon),
    /held by grace until 1 Dec, 12:00 at the latest/
  );
  assert.match(
    words.limits({ ends_at: ends_by }, noon)[0]!.text,
    /^Time limit at 1 Dec, 12:00, in 2 days/
  );
});
