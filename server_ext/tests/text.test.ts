// Copyright (c) JupyterHub Fleet developers.
// Distributed under the terms of the Modified BSD License.

import assert from 'node:assert/strict';
import { test } from 'node:test';

import { fileName } from '../src/timeline/file.js';
import { asJson, asText } from '../src/timeline/text.js';
import { aTimeline, anAdmission, anEvent, at, TEN } from './builders.js';

test('the text for support is in UTC, in order, and names the request', () => {
  const text = asText(aTimeline(), TEN + 200_000, [['version', '0.1.0']]);
  assert.deepEqual(text.split('\n').slice(0, 11), [
    'state     Ready on gpu-17, admitted in 3 min 12 s.',
    'request   01J8 start 1',
    'user      ada',
    'server    gpu',
    'profile   gpu-large',
    'class     gpu-large',
    'machine   gpu-17',
    'as of     2026-11-29 10:03:20 UTC',
    'schema    jupyterhub-fleet/timeline/v1',
    'version   0.1.0',
    ''
  ]);
  assert.ok(
    text.includes('   3  2026-11-29 10:02:40  2 min 40 s  Placed on gpu-17\n')
  );
});

test('the text for support names nobody but its owner', () => {
  const text = asText(aTimeline(), TEN);
  assert.ok(text.includes('[gpu_busy]'));
  assert.ok(text.includes('somebody else'));
  assert.ok(!text.includes('grace'));
});

test('neither a headline, a drain nor a wish names anybody in the text', () => {
  const [, waiting] = anAdmission();
  const wish = anEvent(4, 6, 'queued', {
    kind: 'note',
    explanation: { reason: 'release_wished', subject: 'grace' }
  });
  const told = asText(aTimeline([waiting!, wish]), TEN);
  assert.ok(!told.includes('grace'), told);
  assert.match(told, / {2}Somebody waits for .* \[release_wished\]\n/);
  const drained = anEvent(3, 5, 'queued', {
    explanation: { reason: 'draining', machine: 'gpu-17', subject: 'grace' }
  });
  for (const event of [waiting!, drained]) {
    const { explanation = null } = event;
    const text = asText(aTimeline([event], { explanation, position: 2 }), TEN);
    assert.match(text, /^state {5}2 ahead of you\. \S/);
    assert.ok(!text.includes('grace'), text);
  }
});

test('every time of the text is in UTC, whatever the reader’s clock says', () => {
  const holders = [{ workload: 'w0', ends_by: at(86_400) }];
  const events = [
    anEvent(1, 0, 'queued', { explanation: { reason: 'gpu_busy', holders } })
  ];
  const limits = { ends_at: at(3_600), memory_bytes: 2 ** 31 };
  const text = asText(aTimeline(events, { limits }), TEN);
  assert.ok(text.includes('until 2026-11-30 10:00:00 UTC at the latest'), text);
  assert.ok(
    text.includes(
      'limits    Time limit at 2026-11-29 11:00:00 UTC, in 1 h 0 min; 2 GiB'
    ),
    text
  );
});

test('a name with line breaks cannot forge a line of the text', () => {
  const hostile = 'gpu\n   9  2026-11-29 10:00:00  0 s  Ready';
  const text = asText(aTimeline(anAdmission(), { machine: hostile }), TEN);
  assert.ok(!text.split('\n').some(line => line.startsWith('   9')));
});

test('the JSON is the document as it came', () => {
  const timeline = aTimeline();
  assert.deepEqual(JSON.parse(asJson(timeline)), timeline);
});

test('a file is named after its server and its moment, and leads nowhere else', () => {
  assert.equal(
    fileName(aTimeline(), TEN, 'txt'),
    'admission-gpu-2026-11-29T100000Z.txt'
  );
  const hostile = aTimeline([], { server: '../../.b\u202egpj' });
  assert.equal(
    fileName(hostile, TEN, 'json'),
    'admission--b-gpj-2026-11-29T100000Z.json'
  );
  assert.match(fileName(null, TEN, 'txt'), /^admission-default-/);
});
