import Larder
import LarderLMDB

// error: overlapping accesses to 'transaction'
func attempt(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) async throws {
  try await environment.write { transaction in
    try transaction.withBytes(forKey: "k", in: store) { bytes in
      try transaction.removeAll(of: store)
      _ = bytes?.byteCount
    }
  }
}
