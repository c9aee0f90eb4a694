import Larder

/// A store of integers over one of sample values, for running histories on what a ``ConformanceSuite`` opens.
///
/// Zero stands for a stored nil, so that histories meet it as well.
struct IntegerStore<Base: DataStore>: DataStore where Base.Value == SampleValue? {
  let base: Base

  var information: StoreInformation { base.information }

  func value(forKey key: StoreKey) async throws -> Int? {
    try integer(from: await base.value(forKey: key))
  }

  func values(forKeys keys: [StoreKey]) async throws -> [Int?] {
    try await base.values(forKeys: keys).map(integer)
  }

  func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Int>] {
    try await base.entries(in: range, limit: limit, order: order).map { entry in
      StoreEntry(key: entry.key, value: try integer(from: entry.value))
    }
  }

  func keys(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreKey] {
    try await base.keys(in: range, limit: limit, order: order)
  }

  func count(in range: KeyRange) async throws -> Int {
    try await base.count(in: range)
  }

  func apply(_ changes: ChangeBatch<Int>) async throws {
    try await base.apply(ChangeBatch(changes.changes.map { $0.mapValue { _, integer in sample(of: integer) } }))
  }

  func update<Result: Sendable>(
    _ keys: [StoreKey], _ body: @escaping @Sendable (inout [Int?]) throws -> Result
  ) async throws -> Result {
    try await base.update(keys) { slots in
      var integers = try slots.map(integer)
      defer { slots = integers.map { $0.map(sample) } }
      return try body(&integers)
    }
  }

  func synchronize() async throws {
    try await base.synchronize()
  }

  func close() async throws {
    try await base.close()
  }

  private func sample(of integer: Int) -> SampleValue? {
    integer == 0 ? nil : SampleValue(integer: Int64(integer))
  }

  private func integer(from slot: SampleValue??) throws -> Int? {
    try slot.map { try integer(from: $0) }
  }

  private func integer(from sample: SampleValue?) throws -> Int {
    guard let sample else { return 0 }
    guard let integer = Int(exactly: sample.integer), integer != 0, sample == self.sample(of: integer) else {
      throw Mismatch(subject: "a value", expected: "an integer other than 0", got: "\(sample)", place: "")
    }
    return integer
  }
}
