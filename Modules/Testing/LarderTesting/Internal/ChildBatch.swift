import Larder

/// One of the batches that a process writes until it is killed: what it does follows from its number and a seed.
struct ChildBatch: Sendable {
  /// The key whose value is the number of the latest batch.
  static let counter: StoreKey = "counter"

  let number: Int
  private let changes: [Change<SampleValue?>]

  init(number: Int, seed: UInt64) {
    self.number = number
    var generator = SeededGenerator(seed: seed, purpose: "batch \(number)")
    var changes: [Change<SampleValue?>] = [.set(ChildBatch.counter, SampleValue(integer: Int64(number)))]
    for _ in 0..<3 {
      let text = String(repeating: "\(number) ", count: .random(in: 1..<400, using: &generator))
      changes.append(.set(ChildBatch.key(using: &generator), SampleValue(text)))
    }
    changes.append(.set(ChildBatch.key(using: &generator), nil))
    changes.append(.remove(ChildBatch.key(using: &generator)))
    if number.isMultiple(of: 9) { changes.append(.removeAll("k0"..<"k3")) }
    self.changes = changes
  }

  private static func key(using generator: inout SeededGenerator) -> StoreKey {
    StoreKey("k\(Int.random(in: 0..<8, using: &generator))")
  }

  /// Writes the batch: every third one by an update, if it removes no range.
  ///
  /// - Throws: What the store throws.
  func write<Store: DataStore>(to store: Store) async throws where Store.Value == SampleValue? {
    let keys = Array(Set(changes.compactMap(\.key)))
    guard number % 3 == 1, !number.isMultiple(of: 9) else { return try await store.apply(ChangeBatch(changes)) }
    try await store.update(keys) { [changes] slots in
      var values = Dictionary(uniqueKeysWithValues: zip(keys, slots))
      for change in changes {
        if case .set(let key, let value) = change { values[key] = .some(.some(value)) }
        if case .remove(let key) = change { values[key] = .some(nil) }
      }
      slots = keys.map { values[$0] ?? nil }
    }
  }

  /// What a store holds after this batch and all before it.
  static func entries(afterBatch number: Int, seed: UInt64) -> [(StoreKey, SampleValue?)] {
    var values: [StoreKey: SampleValue?] = [:]
    for number in 1..<number + 1 {
      for change in ChildBatch(number: number, seed: seed).changes {
        switch change {
        case .set(let key, let value): values[key] = .some(value)
        case .remove(let key): values[key] = nil
        case .removeAll(let range): values = values.filter { !range.contains($0.key) }
        }
      }
    }
    return values.map { ($0.key, $0.value) }
  }
}
