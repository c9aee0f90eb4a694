import Larder
import LarderLMDB

// error: 'cursor' cannot be captured by an escaping closure since it is a borrowed parameter
func attempt(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) throws -> StoreKey? {
  try environment.read { transaction in
    // The type is stated, because without it Swift 6.3.1 crashes instead of reporting this error.
    let kept = try transaction.withCursor(of: store) { (cursor: borrowing LMDBCursor) in { cursor.key } }
    return kept()
  }
}
