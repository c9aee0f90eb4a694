import Larder

/// Throws a ``Mismatch`` unless two values are equal.
func expect<Subject: Equatable>(
  _ subject: @autoclosure () -> String, _ got: Subject, equals expected: Subject,
  file: String = #fileID, line: Int = #line
) throws {
  guard got != expected else { return }
  throw Mismatch(
    subject: subject(), expected: text(of: expected), got: text(of: got),
    difference: difference(expected: expected, got: got), place: "\(file):\(line)")
}

/// Throws a ``Mismatch`` unless a condition holds.
func expect(
  _ subject: @autoclosure () -> String, _ holds: Bool, expected: @autoclosure () -> String,
  got: @autoclosure () -> String, file: String = #fileID, line: Int = #line
) throws {
  guard !holds else { return }
  throw Mismatch(subject: subject(), expected: expected(), got: got(), place: "\(file):\(line)")
}

/// Throws a ``Mismatch`` unless an operation throws a `StoreError` with a code and, if given, a key.
///
/// - Returns: The error.
@discardableResult
func expect<Result>(
  _ subject: @autoclosure () -> String, throws code: StoreError.Code, key: StoreKey? = nil,
  file: String = #fileID, line: Int = #line, by operation: () async throws -> Result
) async throws -> StoreError {
  let got: String
  do {
    got = "no error (result: \(text(of: try await operation())))"
  } catch let error as StoreError where error.code == code {
    if let key, error.key != key {
      got = "a StoreError with code \(error.code) and \(error.key.map { "key \($0)" } ?? "no key")"
    } else {
      return error
    }
  } catch {
    got = text(of: error)
  }
  let named = key.map { " and key \(shortened($0.description))" } ?? ""
  throw Mismatch(
    subject: subject(), expected: "a StoreError with code \(code)\(named)", got: got, place: "\(file):\(line)")
}

/// Throws a ``Mismatch`` unless an operation throws an error that equals another.
func expect<Failure: Error & Equatable, Result>(
  _ subject: @autoclosure () -> String, throws expected: Failure,
  file: String = #fileID, line: Int = #line, by operation: () async throws -> Result
) async throws {
  let got: String
  do {
    got = "no error (result: \(text(of: try await operation())))"
  } catch let error as Failure where error == expected {
    return
  } catch {
    got = text(of: error)
  }
  throw Mismatch(subject: subject(), expected: "the error \(expected)", got: got, place: "\(file):\(line)")
}

/// Throws a ``Mismatch`` unless a store contains exactly the given entries, for every way of reading.
func expect<Store: DataStore>(
  _ subject: @autoclosure () -> String, _ store: Store, holds entries: [(StoreKey, SampleValue?)],
  file: String = #fileID, line: Int = #line
) async throws where Store.Value == SampleValue? {
  let entries = entries.sorted { $0.0 < $1.0 }
  let keys = entries.map(\.0)
  try await expect(
    "\(subject()): all entries", store.entries(in: .all, limit: .max, order: .ascending),
    equals: entries.map { StoreEntry(key: $0, value: $1) }, file: file, line: line)
  try await expect(
    "\(subject()): all keys", store.keys(in: .all, limit: .max, order: .ascending), equals: keys,
    file: file, line: line)
  try await expect(
    "\(subject()): count of all entries", store.count(in: .all), equals: keys.count, file: file, line: line)
  try await expect(
    "\(subject()): values of all keys", store.values(forKeys: keys), equals: entries.map { $0.1 },
    file: file, line: line)
  for (key, value) in entries.prefix(8) {
    try await expect(
      "\(subject()): value of \(key)", store.value(forKey: key), equals: value, file: file, line: line)
  }
}

/// Throws a ``Mismatch`` unless an operation throws `CancellationError`.
func expectCancellation<Result>(
  _ subject: @autoclosure () -> String, file: String = #fileID, line: Int = #line,
  of operation: () async throws -> Result
) async throws {
  let got: String
  do {
    got = "no error (result: \(text(of: try await operation())))"
  } catch is CancellationError {
    return
  } catch {
    got = text(of: error)
  }
  throw Mismatch(subject: subject(), expected: "CancellationError", got: got, place: "\(file):\(line)")
}

/// A broken promise that a case has found; the suite adds the case.
struct Mismatch: Error {
  let subject: String
  let expected: String
  let got: String
  /// The first difference between the two texts, if it is not obvious.
  var difference = ""
  let place: String
}
