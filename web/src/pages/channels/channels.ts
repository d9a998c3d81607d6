import type { components } from '../../../generated/admin-api.d.ts';
import { answerAndTagOf, answerOf, api } from '../../api/client.ts';

export type Channel = components['schemas']['Channel'];
export type ChannelChanges = components['schemas']['ChannelChanges'];

export const channelsKey = ['channels'] as const;
export const channelKey = (id: string) => ['channels', id] as const;

export const readChannel = (id: string, signal?: AbortSignal) =>
  answerAndTagOf(api.GET('/admin/v1/channels/{channelId}', { params: { path: { channelId: id } }, signal }));

const at = (id: string, tag: string | undefined) => ({
  path: { channelId: id },
  header: tag === undefined ? {} : { 'If-Match': tag },
});

export const writeChannel = (id: string, body: ChannelChanges, tag: string | undefined) =>
  answerAndTagOf(api.PATCH('/admin/v1/channels/{channelId}', { params: at(id, tag), body }));

export const removeChannel = (id: string, tag: string | undefined) =>
  answerOf(api.DELETE('/admin/v1/channels/{channelId}', { params: at(id, tag) }));
