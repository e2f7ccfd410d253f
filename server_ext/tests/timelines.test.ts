// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { instant } from '../src/timeline/amounts.js';
import type { ITimeline } from '../src/timeline/contract.js';
import { ordered, view } from '../src/timeline/view.js';
import { Words } from '../src/timeline/words.js';

interface IExample {
  name: string;
  timeline: ITimeline;
  steps: unknown[];
  spent: string;
  ends: string;
  events: string[];
  since: number[];
}

const examples = JSON.parse(
  readFileSync('tests/data/timelines.json', 'utf8')
) as IExample[];

for (const example of examples) {
  test(`drawn as on a page without a script: ${example.name}`, () => {
    const { timeline } = example;
    const words = new Words();
    const shown = view(timeline, instant(timeline.as_of) ?? 0);
    assert.deepEqual(
      shown.steps.map(step => ({
        phase: step.phase,
        status: step.status,
        word: words.status(step.status),
        label: words.step(step, timeline),
        seconds: step.seconds,
        reason: step.explanation?.reason ?? null,
        notes: step.notes.map(note => note.seq),
        instead: step.instead.map(way => way.reason)
      })),
      example.steps
    );
    assert.equal(words.spent(shown), example.spent);
    assert.equal(words.endsAfter(timeline.limits?.time_limits), example.ends);
    assert.deepEqual(
      ordered(timeline).map(event => words.event(event)),
      example.events
    );
    assert.deepEqual(
      shown.since.map(event => event.seq),
      example.since
    );
  });
}
