import { useMantineColorScheme } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { answerOf, api } from '../api/client.ts';
import { isProblem } from '../api/problem.ts';
import { changeLanguage, currentLanguage, defineTexts } from '../i18n/i18n.ts';
import { channelsQuery } from '../parts/catalogue.ts';
import { useSubscriptionsWith } from '../parts/subscriptions.ts';
import { useShellTexts } from '../shell/texts.ts';
import type { Item } from './find-items.ts';
import { goKeys } from './keys.ts';

const useTexts = defineTexts(
  'palette-items',
  {
    welcome: 'First steps',
    newReplay: 'New replay',
    cancelUnfinished: 'Cancel unfinished deliveries',
    help: 'Keyboard shortcuts',
    light: 'Light appearance',
    dark: 'Dark appearance',
    paused: 'paused',
    disabled: 'disabled',
    notification: 'Notification {{id}}',
    replay: 'Replay {{id}}',
    onChannel: 'on {{channel}}',
  },
  {
    welcome: 'Eerste stappen',
    newReplay: 'Nieuwe herverzending',
    cancelUnfinished: 'Onafgemaakte afleveringen annuleren',
    help: 'Sneltoetsen',
    light: 'Lichte weergave',
    dark: 'Donkere weergave',
    paused: 'gepauzeerd',
    disabled: 'uitgeschakeld',
    notification: 'Notificatie {{id}}',
    replay: 'Herverzending {{id}}',
    onChannel: 'op {{channel}}',
  },
);

/** Everything that has a name; of subscriptions those in which the server finds what is sought. */
export function useItems(sought: string, onHelp: () => void): { items: Item[]; isLoading: boolean; error: unknown } {
  const t = useTexts();
  const page = useShellTexts();
  const navigate = useNavigate();
  const { setColorScheme } = useMantineColorScheme();
  const channels = useQuery(channelsQuery);
  const subscriptions = useSubscriptionsWith(sought, sought.trim() !== '');
  const pages = Object.entries(goKeys).map(([key, name]): Item => ({
    id: `page ${name}`,
    group: 'pages',
    label: page(name),
    hint: `g ${key}`,
    words: name,
    run: () => void navigate({ to: `/${name}` }),
  }));
  const action = (id: string, label: string, run: () => void): Item => ({
    id,
    group: 'actions',
    label,
    words: id,
    run,
  });
  const actions = [
    action('first steps welcome', t('welcome'), () => void navigate({ to: '/welcome' })),
    action('new replay', t('newReplay'), () => void navigate({ to: '/replays/new' })),
    action(
      'cancel unfinished deliveries',
      t('cancelUnfinished'),
      () => void navigate({ to: '/replays/new', search: { what: 'unfinished' } }),
    ),
    action('keyboard shortcuts help', t('help'), onHelp),
    action('light theme', t('light'), () => setColorScheme('light')),
    action('dark theme', t('dark'), () => setColorScheme('dark')),
    action(
      'language taal english nederlands',
      page('language'),
      () => void changeLanguage(currentLanguage() === 'en' ? 'nl' : 'en'),
    ),
  ];
  const ofChannels = (channels.data ?? []).map((channel): Item => ({
    id: `channel ${channel.id}`,
    group: 'channels',
    label: channel.name,
    hint: channel.filters.join(', '),
    words: channel.id,
    run: () => void navigate({ to: '/channels/$id', params: { id: channel.id } }),
  }));
  const ofSubscriptions = subscriptions.found.map((subscription): Item => ({
    id: `subscription ${subscription.id}`,
    group: 'subscriptions',
    label: subscription.callbackUrl,
    hint: [
      subscription.ownerClientId,
      ...(subscription.disabledAt ? [t('disabled')] : []),
      ...(subscription.pausedAt ? [t('paused')] : []),
    ].join(' · '),
    run: () => void navigate({ to: '/subscriptions/$id', params: { id: subscription.id } }),
  }));
  return {
    items: [...pages, ...actions, ...ofChannels, ...ofSubscriptions],
    isLoading: channels.isPending || subscriptions.isLoading,
    error: channels.error ?? subscriptions.error,
  };
}

/** An item with this id that is in no list: a notification or a replay. */
export function useFound(id: string | undefined) {
  const t = useTexts();
  const navigate = useNavigate();
  return useQuery({
    queryKey: ['palette', 'id', id],
    enabled: id !== undefined,
    staleTime: 10_000,
    queryFn: async ({ signal }) => {
      const found = await Promise.all([notification(id!, signal), replay(id!, signal)]);
      return found.filter((one) => one !== undefined);
    },
    select: (found) =>
      found.map(({ kind, id: of, hint }): Item => ({
        id: `found ${kind} ${of}`,
        group: 'found',
        label: t(kind, { id: of }),
        hint: kind === 'notification' ? t('onChannel', { channel: hint }) : hint,
        run: () => void navigate({ to: `/${kind}s/$id`, params: { id: of } }),
      })),
  });
}

interface Found {
  kind: 'notification' | 'replay';
  id: string;
  hint: string;
}

async function unlessAbsent(find: Promise<Found>): Promise<Found | undefined> {
  try {
    return await find;
  } catch (error) {
    if (isProblem(error) && error.status === 404) return undefined;
    throw error;
  }
}

const notification = (id: string, signal: AbortSignal) =>
  unlessAbsent(
    answerOf(api.GET('/admin/v1/notifications/{id}', { params: { path: { id }, query: { limit: 1 } }, signal })).then(
      ({ channel }): Found => ({ kind: 'notification', id, hint: channel }),
    ),
  );

const replay = (id: string, signal: AbortSignal) =>
  unlessAbsent(
    answerOf(api.GET('/admin/v1/replays/{id}', { params: { path: { id } }, signal })).then(({ state }): Found => ({
      kind: 'replay',
      id,
      hint: state,
    })),
  );
