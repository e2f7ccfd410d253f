// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

import type { IExplanation } from '../src/timeline/contract.js';
import { OF_ANOTHER } from '../src/timeline/phrases.js';
import { remedy, sentence } from '../src/timeline/reasons.js';
import { ofAnother, translatorOf } from '../src/timeline/translator.js';
import type { ITranslator } from '../src/timeline/translator.js';
import { view } from '../src/timeline/view.js';
import { Words } from '../src/timeline/words.js';
import { aTimeline, anAdmission } from './builders.js';

const polish = translatorOf({
  tag: 'pl',
  plurals: Array.from({ length: 200 }, (_, n) =>
    n === 1
      ? 0
      : n % 10 >= 2 && n % 10 <= 4 && (n % 100 < 10 || n % 100 >= 20)
        ? 1
        : 2
  ),
  texts: {
    '%1 core': ['%1 rdzeń', '%1 rdzenie', '%1 rdzeni'],
    'You are next.': ['Jesteś następny.'],
    'It is next.': ['Jest następny.'],
    Ready: []
  }
});

/** Puts brackets around everything that a translator is asked for. */
const pseudo: ITranslator = {
  __: (text, ...values) =>
    `⟦${values.reduce<string>((said, value, index) => said.replaceAll(`%${index + 1}`, String(value)), text)}⟧`,
  _n: (one, many, count, ...values) =>
    pseudo.__(count === 1 ? one : many, count, ...values)
};

/** What stands outside of all brackets. */
function outside(text: string): string {
  let depth = 0;
  let left = '';
  for (const sign of text) {
    depth += sign === '⟦' ? 1 : 0;
    left += depth === 0 ? sign : '';
    depth -= sign === '⟧' ? 1 : 0;
  }
  return left.trim();
}

test('each number has the form of its language', () => {
  const told = [1, 2, 5, 12, 22, 112, 1022, 1.5].map(count =>
    polish._n('%1 core', '%1 cores', count)
  );
  assert.deepEqual(told, [
    '1 rdzeń',
    '2 rdzenie',
    '5 rdzeni',
    '12 rdzeni',
    '22 rdzenie',
    '112 rdzeni',
    '1022 rdzenie',
    '1.5 rdzenie'
  ]);
});

test('what is not translated is said in English', () => {
  assert.equal(polish.__('Ready'), 'Ready');
  assert.equal(polish.__('%1 ago', '2 min'), '2 min ago');
  assert.equal(polish._n('%1 GPU', '%1 GPUs', 2), '2 GPUs');
});

test('somebody who looks at another one’s server is not told that it is theirs', () => {
  const waiting = aTimeline(anAdmission().slice(0, 2), {
    position: 0
  });
  const shown = view(waiting, 0);
  const other = ofAnother(polish, OF_ANOTHER);
  assert.match(new Words(polish).lead(waiting, shown), /Jesteś następny/);
  assert.match(new Words(other).lead(waiting, shown), /Jest następny/);
  assert.equal(other._n('%1 core', '%1 cores', 1), '1 rdzeń');
});

test('no word of a reason stands outside of what is translated', () => {
  const { reasons } = JSON.parse(
    readFileSync('tests/data/sentences.json', 'utf8')
  ) as { reasons: { explanation: IExplanation }[] };
  for (const { explanation } of reasons) {
    assert.equal(outside(sentence(pseudo, explanation, String)), '');
    assert.equal(outside(remedy(pseudo, explanation)), '');
  }
});
