import Larder
import LarderLMDB

// error: lifetime-dependent variable 'bytes' escapes its scope
func attempt(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) throws -> () -> Int? {
  try environment.read { transaction in
    try transaction.withBytes(forKey: "k", in: store) { bytes in
      return { bytes?.byteCount }
    }
  }
}
