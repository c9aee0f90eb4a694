import Larder

/// The record of a request with an idempotency key.
struct IdempotencyRecord: Sendable, Hashable {
  /// The digest of the request.
  let fingerprint: [UInt8]

  /// The wall-clock time from which the record counts as absent, in microseconds since 1970.
  let deadline: Int64

  /// The encoded outcome, or `nil` while the request runs, or after it was interrupted.
  let outcome: [UInt8]?

  /// The number of bytes of a record without its outcome.
  static let overhead = 1 + KeyDigest.length + 8 + 1 + 4

  init(fingerprint: [UInt8], deadline: Int64, outcome: [UInt8]?) {
    (self.fingerprint, self.deadline, self.outcome) = (fingerprint, deadline, outcome)
  }

  /// The stored form.
  var record: [UInt8] {
    var bytes = RecordBytes()
    bytes.append(fingerprint)
    bytes.append(deadline)
    bytes.append(UInt8(outcome == nil ? 0 : 1))
    bytes.append(outcome ?? [])
    return bytes.sealed
  }

  /// Reads a record.
  ///
  /// - Throws: `RecordProblem`.
  init(record: [UInt8]) throws(RecordProblem) {
    var bytes = try RecordReader(record)
    fingerprint = Array(try bytes.take(KeyDigest.length))
    deadline = try bytes.take()
    let isFinished: UInt8 = try bytes.take()
    outcome = isFinished == 0 ? nil : Array(bytes.rest)
  }

  /// Returns whether the record counts.
  ///
  /// - Parameter now: The wall-clock time, in microseconds since 1970.
  func isLive(at now: Int64) -> Bool { now < deadline }
}

/// The next step of a request, by the record of its key.
enum IdempotencyStep: Sendable, Hashable {
  /// The request runs, because there is no record.
  case run
  /// The request was interrupted before, or runs elsewhere.
  case started
  /// The outcome of an earlier request with the key.
  case finished([UInt8])
  /// The key belongs to another request.
  case otherRequest

  /// Decides by a record.
  ///
  /// - Parameters:
  ///   - record: The record, or `nil` if there isn't one.
  ///   - fingerprint: The digest of the request.
  ///   - now: The wall-clock time, in microseconds since 1970.
  init(_ record: IdempotencyRecord?, fingerprint: [UInt8], now: Int64) {
    guard let record, record.isLive(at: now) else {
      self = .run
      return
    }
    guard record.fingerprint == fingerprint else {
      self = .otherRequest
      return
    }
    self = record.outcome.map { .finished($0) } ?? .started
  }
}
