import { Global, Module, type DynamicModule } from '@nestjs/common';
import type { Settings } from './settings.js';

/** The settings as a provider. A class, so that it is type and token at once. */
export abstract class Config {
  abstract readonly settings: Settings;
}

@Global()
@Module({})
export class ConfigModule {
  static with(settings: Settings): DynamicModule {
    return { module: ConfigModule, providers: [{ provide: Config, useValue: { settings } }], exports: [Config] };
  }
}
