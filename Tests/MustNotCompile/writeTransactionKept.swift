import Larder
import LarderLMDB

// error: escaping closure captures 'inout' parameter 'transaction'
func attempt(_ environment: LMDBEnvironment, _ store: LMDBStore<[UInt8]>) async throws {
  let box = Box()
  try await environment.write { transaction in
    box.read = { try transaction.value(forKey: "k", in: store) }
  }
}

final class Box: @unchecked Sendable {
  var read: () throws -> [UInt8]? = { nil }
}
