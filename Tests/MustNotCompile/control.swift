import Larder
import LarderLMDB

// compiles
func read(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) throws -> Int? {
  try environment.read { transaction in
    try transaction.withBytes(forKey: "k", in: store) { bytes in bytes?.byteCount }
  }
}

func write(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) async throws -> Int? {
  try await environment.write { transaction in
    try transaction.setValue([1], forKey: "k", in: store)
    return try transaction.withCursor(of: store) { cursor in
      try cursor.moveToFirst() ? cursor.withEntryBytes { key, value in key.byteCount + value.byteCount } : nil
    }
  }
}
