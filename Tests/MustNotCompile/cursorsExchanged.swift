import Larder
import LarderLMDB

// error: cannot pass immutable value as inout argument: 'outer' is a 'let' constant
func attempt(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) throws -> StoreKey? {
  try environment.read { transaction in
    try transaction.withCursor(of: store) { outer in
      try transaction.withCursor(of: store) { inner in
        _ = try inner.moveToFirst()
        swap(&outer, &inner)
      }
      return outer.key
    }
  }
}
