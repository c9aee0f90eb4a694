import Larder
import LarderLMDB

// error: cannot use mutating member on immutable value: 'transaction'
func attempt(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) throws {
  try environment.read { transaction in try transaction.setValue([1], forKey: "k", in: store) }
}
