import { Global, Module, type DynamicModule } from '@nestjs/common';
import { Siblings } from './siblings.js';

@Global()
@Module({})
export class SupervisionModule {
  static with(siblings: Siblings): DynamicModule {
    return {
      module: SupervisionModule,
      providers: [{ provide: Siblings, useValue: siblings }],
      exports: [Siblings],
    };
  }
}
