import Larder
import LarderLMDB

// error: requires that 'RawSpan' conform to 'Escapable'
func attempt(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) throws -> Int? {
  try environment.read { transaction in
    let kept = try transaction.withBytes(forKey: "k", in: store) { bytes in bytes }
    return kept?.byteCount
  }
}
