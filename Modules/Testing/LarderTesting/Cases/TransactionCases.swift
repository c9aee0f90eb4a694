import Foundation
import Larder

/// Cases that run transactions over the store, which need nothing but its updates and its information.
extension CaseList {
  mutating func addTransactionCases() {
    begin(.updates, checking: .updates)
    add("289a", "a transaction commits all of its views or none, and reads what it wrote") { store, trial in
      let bytes = BytesStore(base: store)
      let names = bytes.typed(String.self, prefix: "n/", codec: .json())
      let ages = bytes.typed(Int.self, prefix: "a/", codec: .json())
      try await bytes.transaction { transaction in
        try await transaction.setValue("Ada", forKey: "1", in: names)
        try await transaction.setValue(36, forKey: "1", in: ages)
        let read = try await transaction.value(forKey: "1", in: ages)
        try expect("the value that the transaction wrote", read, equals: 36)
        return .commit(())
      }
      try await bytes.transaction { transaction in
        try await transaction.setValue("Bob", forKey: "2", in: names)
        try await transaction.removeValue(forKey: "1", in: ages)
        return .discard(())
      }
      let settled = BytesStore(base: try await trial.settled(store))
      try await expect("the keys", settled.keys(in: .all, limit: .max, order: .ascending), equals: ["a/1", "n/1"])
    }
    add("289b", "a transaction whose reads were changed runs again") { store, _ in
      let bytes = BytesStore(base: store)
      let counts = bytes.typed(Int.self, prefix: "c/", codec: .json())
      try await counts.setValue(1, forKey: "a")
      let runs = Tally()
      try await bytes.transaction { transaction in
        let read = try await transaction.value(forKey: "a", in: counts) ?? 0
        if runs.add() == 0 { try await counts.setValue(10, forKey: "a") }
        try await transaction.setValue(read + 1, forKey: "b", in: counts)
        return .commit(())
      }
      try await expect("the number computed from what was read", counts.value(forKey: "b"), equals: 11)
      try expect("whether it ran again", runs.count >= 2, equals: true)
    }
    add("289c", "concurrent transfers keep the sum of two accounts", checks: .updates) { store, trial in
      let bytes = BytesStore(base: store)
      let accounts = bytes.typed(Int.self, prefix: "a/", codec: .json())
      let log = bytes.typed(Int.self, prefix: "l/", codec: .json())
      try await accounts.apply([.set("x", 100), .set("y", 100)])
      try await concurrently(4) { task in
        for number in 0..<4 {
          try await bytes.transaction { transaction in
            let amount = 1 + task
            try await transaction.update("x", in: accounts) { $0 = ($0 ?? 0) - amount }
            try await transaction.update("y", in: accounts) { $0 = ($0 ?? 0) + amount }
            try await transaction.setValue(amount, forKey: StoreKey("\(task)/\(number)"), in: log)
            return .commit(())
          }
        }
      }
      let settled = BytesStore(base: try await trial.settled(store))
      let sums = settled.typed(Int.self, prefix: "a/", codec: .json())
      try await expect("the accounts", sums.values(forKeys: ["x", "y"]), equals: [60, 140])
      try await expect("the number of transfers", settled.count(in: .prefix("l/")), equals: 16)
    }
  }
}

/// A store of bytes whose values are the bytes of sample values in another store.
private final class BytesStore<Base: DataStore>: DataStore where Base.Value == SampleValue? {
  let base: Base

  init(base: Base) {
    self.base = base
  }

  var information: StoreInformation { base.information }

  private static func bytes(_ value: SampleValue??) -> [UInt8]? { value.map { Array($0?.bytes ?? Data()) } }

  private static func sample(_ bytes: [UInt8]) -> SampleValue? { SampleValue(bytes: Data(bytes)) }

  func value(forKey key: StoreKey) async throws -> [UInt8]? { Self.bytes(try await base.value(forKey: key)) }

  func values(forKeys keys: [StoreKey]) async throws -> [[UInt8]?] {
    try await base.values(forKeys: keys).map(Self.bytes)
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<[UInt8]>] {
    try await base.entries(in: range, limit: limit, order: order).map {
      StoreEntry(key: $0.key, value: Self.bytes($0.value) ?? [])
    }
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int { try await base.count(in: range) }

  func apply(_ changes: ChangeBatch<[UInt8]>) async throws {
    try await base.apply(ChangeBatch(changes.changes.map { $0.mapValue { _, bytes in Self.sample(bytes) } }))
  }

  func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<[UInt8], Result>
  ) async throws -> Result {
    try await base.update(deciding: keys) { slots in
      var stored = UpdateSlots(stored: slots.map(Self.bytes))
      let decision = body(&stored)
      for index in stored.assignedIndices { slots[index] = stored[index].map(Self.sample) }
      return decision
    }
  }

  func synchronize() async throws { try await base.synchronize() }

  func close() async throws { try await base.close() }
}
