import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useRef } from 'react';
import { answerOf, api } from '../../api/client.ts';
import { isPassing } from '../../api/problem.ts';
import { randomKey } from '../../parts/random-key.ts';
import type { Notificatie } from './draft.ts';

export interface PublishRequest {
  body: Notificatie;
  headers: Record<string, string>;
}

/**
 * Publishes a request. One to which no answer came may have been carried out: tried again unchanged, it is the same request under the
 * same key, and published once.
 */
export function usePublish() {
  const client = useQueryClient();
  const unanswered = useRef<{ draft: string; request: PublishRequest }>(undefined);
  return useMutation({
    mutationFn: async ({ draft, request }: { draft: string; request: PublishRequest }) => {
      const kept = unanswered.current?.draft === draft ? unanswered.current.request : request;
      const { body } = kept;
      const headers = { 'Idempotency-Key': randomKey(), ...kept.headers };
      unanswered.current = { draft, request: { body, headers } };
      try {
        const answer = await answerOf(api.POST('/admin/v1/notifications', { body, params: { header: headers } }));
        unanswered.current = undefined;
        return answer;
      } catch (error) {
        if (!isPassing(error)) unanswered.current = undefined;
        throw error;
      }
    },
    onSuccess: () => client.invalidateQueries({ queryKey: ['notifications'] }),
  });
}
