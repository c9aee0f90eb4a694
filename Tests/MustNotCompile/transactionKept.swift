import Larder
import LarderLMDB

// error: 'transaction' is borrowed and cannot be consumed
func attempt(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) throws -> Int? {
  let kept = Box()
  try environment.read { transaction in kept.transaction = consume transaction }
  return try kept.read(store)
}

final class Box {
  var transaction: LMDBTransaction?

  func read(_ store: LMDBStore<[UInt8]>) throws -> Int? {
    try transaction?.value(forKey: "k", in: store)?.count
  }
}
