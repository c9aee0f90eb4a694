import Larder

/// The entries that a store must contain.
typealias Entries = [StoreKey: SampleValue?]

/// A broken promise that a case has found; the suite adds the case.
struct Mismatch: Error {
  let subject: String
  let expected: String
  let got: String
  /// The first difference between the two texts, if it is not obvious.
  var difference = ""
}

/// Throws a ``Mismatch`` unless two values are equal.
func expect<Subject: Equatable>(
  _ subject: @autoclosure () -> String, _ got: Subject, equals expected: Subject
) throws {
  guard got != expected else { return }
  throw Mismatch(
    subject: subject(), expected: text(of: expected), got: text(of: got),
    difference: difference(expected: expected, got: got))
}

/// Throws a ``Mismatch`` unless a condition holds.
func expect(
  _ subject: @autoclosure () -> String, _ holds: Bool, expected: @autoclosure () -> String,
  got: @autoclosure () -> String
) throws {
  guard !holds else { return }
  throw Mismatch(subject: subject(), expected: expected(), got: got())
}

/// Throws a ``Mismatch`` unless an operation throws an error that a closure recognizes.
///
/// - Parameters:
///   - subject: The subject of the check.
///   - expected: A description of the error.
///   - recognize: A closure that returns the error, or `nil` if it is another error.
///   - operation: The operation.
/// - Returns: The error.
@discardableResult
func expect<Result, Failure: Error>(
  _ subject: @autoclosure () -> String, throws expected: @autoclosure () -> String,
  where recognize: (any Error) -> Failure?, by operation: () async throws -> Result
) async throws -> Failure {
  let got: String
  do {
    got = "no error (result: \(text(of: try await operation())))"
  } catch {
    if let failure = recognize(error) { return failure }
    got = text(of: error)
  }
  throw Mismatch(subject: subject(), expected: expected(), got: got)
}

/// Throws a ``Mismatch`` unless an operation throws a `StoreError` with a code and, if given, a key.
///
/// - Returns: The error.
@discardableResult
func expect<Result>(
  _ subject: @autoclosure () -> String, throws code: StoreError.Code, key: StoreKey? = nil,
  by operation: () async throws -> Result
) async throws -> StoreError {
  let error = try await expect(
    subject(), throws: "a StoreError with code \(code)",
    where: { ($0 as? StoreError).flatMap { $0.code == code ? $0 : nil } }, by: operation)
  if let key {
    try expect(
      "the key in the error of \(subject())", error.key == key, expected: shortened(key.description),
      got: error.key.map { shortened($0.description) } ?? "no key")
  }
  return error
}

/// Throws a ``Mismatch`` unless an operation throws `CancellationError`.
func expectCancellation<Result>(
  of subject: @autoclosure () -> String, _ operation: () async throws -> Result
) async throws {
  try await expect(
    subject(), throws: "CancellationError", where: { $0 as? CancellationError }, by: operation)
}

/// Throws a ``Mismatch`` unless a store refuses each of several calls with a code and, if given, a key.
///
/// Each error must state the operation, the store, and that nothing changed.
func expect<Store>(
  _ store: Store, refuses calls: [StoreCall<Store>], with code: StoreError.Code, key: StoreKey? = nil
) async throws {
  for call in calls {
    let error = try await expect(call.name, throws: code, key: key) { try await call.run(store) }
    try expect("the operation in the error of \(call.name)", error.operation, equals: call.operation)
    try expect("the store in the error of \(call.name)", error.store, equals: store.information.name)
    try expect("the outcome in the error of \(call.name)", error.outcome, equals: .nothingChanged)
    try expect("whether the error of \(call.name) has a message", error.message.isEmpty, equals: false)
  }
}

/// Throws a ``Mismatch`` unless a store contains exactly the given entries, for every way of reading.
///
/// - Parameters:
///   - store: The store.
///   - entries: The entries.
///   - moment: The moment of the check. It follows "the contents" in a failure. Defaults to an empty string.
func expect<Store: DataStore>(
  _ store: Store, holds entries: Entries, _ moment: @autoclosure () -> String = ""
) async throws where Store.Value == SampleValue? {
  func subject(_ part: String) -> String { "the contents \(moment()): \(part)" }
  let entries = entries.sorted { $0.key < $1.key }
  let keys = entries.map(\.key)
  try await expect(
    subject("all entries"), store.entries(in: .all, limit: .max, order: .ascending),
    equals: entries.map { StoreEntry(key: $0, value: $1) })
  try await expect(subject("all keys"), store.keys(in: .all, limit: .max, order: .ascending), equals: keys)
  try await expect(subject("count of all entries"), store.count(in: .all), equals: keys.count)
  try await expect(subject("values of all keys"), store.values(forKeys: keys), equals: entries.map { $0.value })
  for (key, value) in entries.prefix(8) {
    try await expect(subject("value of \(key)"), store.value(forKey: key), equals: value)
  }
}

/// Throws a ``Mismatch`` unless a store contains exactly the given entries, now and when it is reopened.
///
/// A store that lacks persistence is checked once.
///
/// - Returns: The reopened store.
@discardableResult
func expect<Store>(
  _ store: Store, keeps entries: Entries, in trial: Trial<Store>, _ moment: @autoclosure () -> String = ""
) async throws -> Store {
  try await expect(store, holds: entries, moment())
  guard trial.isPersistent else { return store }
  let reopened = try await trial.reopen(store)
  try await expect(reopened, holds: entries, "\(moment()), reopened")
  return reopened
}

extension Entries {
  /// Creates an entry for each key, whose value contains the key.
  init(keys: [StoreKey]) {
    self.init(keys.map { ($0, SampleValue(key: $0)) }) { $1 }
  }
}

extension SampleValue {
  /// Creates a value that contains a key, so a value stored under the wrong key is noticed.
  init(key: StoreKey) {
    self.init("value of \(key)")
  }
}

extension StoreKey {
  /// A key that is one byte too long.
  static let tooLong = StoreKey(bytes: Array(repeating: 0x61, count: StoreKey.maximumLength + 1))

  /// Keys that every operation must refuse.
  static let invalid: [StoreKey] = ["", .tooLong]
}

extension BatchChange {
  /// Changes the entries of a model.
  func apply(to entries: inout [StoreKey: Value]) {
    switch self {
    case .set(let key, let value): entries[key] = .some(value)
    case .remove(let key): entries[key] = nil
    case .removeAll(let range):
      for key in ScanModel(Array(entries.keys)).keys(in: range) { entries[key] = nil }
    }
  }
}
