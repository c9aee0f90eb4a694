import Larder
import LarderLMDB

// error: lifetime-dependent variable 'kept' escapes its scope
func attempt(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) throws -> Int? {
  try environment.read { transaction in
    var kept: RawSpan?
    try transaction.withBytes(forKey: "k", in: store) { bytes in kept = bytes }
    return kept?.byteCount
  }
}
