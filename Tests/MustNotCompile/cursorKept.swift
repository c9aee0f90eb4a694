import Larder
import LarderLMDB

// error: escaping closure captures 'inout' parameter 'cursor'
func attempt(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) throws -> StoreKey? {
  try environment.read { transaction in
    let kept = try transaction.withCursor(of: store) { cursor in { cursor.key } }
    return kept()
  }
}
