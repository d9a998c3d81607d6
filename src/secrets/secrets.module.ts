import { Global, Module, type DynamicModule } from '@nestjs/common';
import { SecretCipher } from './secret-cipher.service.js';

/** Made before the application, so that a key ring that does not fit is refused before anything runs. */
@Global()
@Module({})
export class SecretsModule {
  static with(cipher: SecretCipher): DynamicModule {
    return {
      module: SecretsModule,
      providers: [{ provide: SecretCipher, useValue: cipher }],
      exports: [SecretCipher],
    };
  }
}
