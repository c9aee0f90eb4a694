import Larder
import LarderLMDB

// error: lifetime-dependent variable 'kept' escapes its scope
func attempt(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) throws -> Int? {
  try environment.read { transaction in
    try transaction.withCursor(of: store) { cursor in
      var kept: RawSpan?
      _ = try cursor.moveToFirst()
      cursor.withEntryBytes { _, value in kept = value }
      return kept?.byteCount
    }
  }
}
