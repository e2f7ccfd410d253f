// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import { utc } from '../src/timeline/amounts.js';
import { KIND_OF, PHASE_OF } from '../src/timeline/contract.js';
import type {
  IExplanation,
  ITimeline,
  State
} from '../src/timeline/contract.js';
import { remedy, sentence } from '../src/timeline/reasons.js';
import { english } from '../src/timeline/translator.js';
import { view } from '../src/timeline/view.js';
import { Words } from '../src/timeline/words.js';

interface ICorpus {
  reasons: { explanation: IExplanation; sentence: string; remedy: string }[];
  headlines: (Partial<ITimeline> & { state: State; headline: string })[];
}

const corpus = JSON.parse(
  readFileSync('tests/data/sentences.json', 'utf8')
) as ICorpus;

/** The Hub writes times so. */
function asTheHub(at: number): string {
  return `${utc(at).slice(0, 16)} UTC`;
}

/** The words with the Hub's way to write times. */
class HubWords extends Words {
  override why(explanation: IExplanation): string {
    return sentence(english, explanation, asTheHub);
  }
}

test('every reason says here what it says on the pages of the Hub', () => {
  const told = new Set(corpus.reasons.map(row => row.explanation.reason));
  assert.deepEqual([...told].sort(), Object.keys(KIND_OF).sort());
  for (const {
    explanation,
    sentence: expected,
    remedy: help
  } of corpus.reasons) {
    assert.equal(sentence(english, explanation, asTheHub), expected);
    assert.equal(remedy(english, explanation), help);
  }
});

test('every state has the headline here that it has on the pages of the Hub', () => {
  const words = new HubWords();
  const states = new Set(corpus.headlines.map(row => row.state));
  assert.equal(states.size, Object.keys(PHASE_OF).length);
  for (const { headline, ...facts } of corpus.headlines) {
    const timeline: ITimeline = {
      as_of: '2026-11-29T14:02:11Z',
      workload: 'w1',
      generation: 1,
      user: 'ada',
      server: '',
      phase: 'asked',
      headline: '',
      ...facts
    };
    assert.equal(words.headline(timeline, view(timeline, 0)), headline);
  }
});

test('a code of a newer controller is spelled out instead of hidden', () => {
  const unknown = { reason: 'moon_too_bright' } as unknown as IExplanation;
  assert.equal(sentence(english, unknown, asTheHub), 'Moon too bright.');
  assert.equal(remedy(english, unknown), '');
});

test('a name cannot rewrite the sentence around it', () => {
  const hostile = sentence(
    english,
    {
      reason: 'offline',
      machine: 'mac\u202e{detail}\u0000',
      subject: '[it] {machine}',
      detail: '<img src=x>'
    },
    asTheHub
  );
  assert.ok(!/[\u202e\u0000]/.test(hostile));
  assert.ok(hostile.includes('mac {detail}'));
  assert.ok(hostile.includes('<img src=x>'));
});

test('a name of a megabyte is cut', () => {
  const long = sentence(
    english,
    { reason: 'offline', machine: 'm'.repeat(1_000_000) },
    asTheHub
  );
  assert.ok(long.length < 1_000);
});
