import Larder

/// The stored forms of the state of a lock, which the article <doc:CoordinationFormat> describes.
extension LockTerm {
  /// The shortest and the longest lease, in nanoseconds.
  static let leases: ClosedRange<Int64> = 1_000_000...86_400_000_000_000

  /// The record of the term.
  var record: [UInt8] {
    var bytes = RecordBytes()
    bytes.append(number)
    bytes.append(owner)
    bytes.append(UInt64(clamping: lease))
    bytes.append(UInt8(isHeld ? 1 : 0))
    return bytes.sealed
  }

  /// Reads a record.
  ///
  /// - Throws: `RecordProblem`.
  init(record: [UInt8]) throws(RecordProblem) {
    var bytes = try RecordReader(record)
    number = try bytes.take()
    // The next number must be a greater one.
    guard number < .max else { throw .damaged }
    owner = try bytes.take()
    let length: UInt64 = try bytes.take()
    // A lease of a damaged record must not hold the lock forever.
    lease = min(max(Int64(clamping: length), Self.leases.lowerBound), Self.leases.upperBound)
    isHeld = try bytes.take() as UInt8 != 0
  }
}

extension LockHeartbeat {
  /// The record of the heartbeat.
  var record: [UInt8] {
    var bytes = RecordBytes()
    bytes.append(term)
    bytes.append(count)
    bytes.append(UInt8(clamping: claims.count))
    for claim in claims { bytes.append(claim) }
    return bytes.sealed
  }

  /// Reads a record.
  ///
  /// - Throws: `RecordProblem`.
  init(record: [UInt8]) throws(RecordProblem) {
    var bytes = try RecordReader(record)
    term = try bytes.take()
    count = try bytes.take()
    let claimCount: UInt8 = try bytes.take()
    guard claimCount <= Self.maximumClaims else { throw .damaged }
    for _ in 0..<claimCount { claims.append(try bytes.take()) }
  }

  /// The largest size of a record, in bytes.
  static let maximumSize = 1 + 8 + 8 + 1 + maximumClaims * 8 + 4
}

extension LockState {
  /// Reads the records.
  ///
  /// - Parameters:
  ///   - term: The record of the term, or `nil` before the first one.
  ///   - heartbeat: The record of the heartbeat, or `nil` if it says nothing.
  /// - Throws: `RecordProblem`.
  init(term: [UInt8]?, heartbeat: [UInt8]?) throws(RecordProblem) {
    if let term { self.term = try LockTerm(record: term) }
    if let heartbeat { self.heartbeat = try LockHeartbeat(record: heartbeat) }
  }

  /// The record of the heartbeat, or `nil` if nothing is to be kept: no waiter, and no renewal of the latest term.
  var heartbeatRecord: [UInt8]? {
    heartbeat.claims.isEmpty && beats == 0 ? nil : heartbeat.record
  }
}

// MARK: Bytes

/// The reason why a record cannot be read.
enum RecordProblem: Error, Hashable {
  case damaged
  case newerVersion
}

/// The version of all records of the module.
private let formatVersion: UInt8 = 1

/// The bytes of a record, which begins with its version and ends with its checksum.
struct RecordBytes {
  private var bytes = [formatVersion]

  mutating func append(_ number: some FixedWidthInteger) {
    withUnsafeBytes(of: number.bigEndian) { bytes += $0 }
  }

  mutating func append(_ other: some Sequence<UInt8>) {
    bytes += other
  }

  /// The whole record.
  var sealed: [UInt8] {
    var sealed = self
    sealed.append(CRC32C.checksum(of: bytes))
    return sealed.bytes
  }
}

/// The rest of a record that is being read.
struct RecordReader {
  private(set) var rest: ArraySlice<UInt8>

  /// Checks the version and the checksum of a record.
  init(_ record: [UInt8]) throws(RecordProblem) {
    guard let version = record.first else { throw .damaged }
    guard version <= formatVersion else { throw .newerVersion }
    guard version == formatVersion, record.count > 4 else { throw .damaged }
    rest = record.suffix(4)
    let checksum: UInt32 = try take()
    guard CRC32C.checksum(of: record.dropLast(4)) == checksum else { throw .damaged }
    rest = record.dropFirst().dropLast(4)
  }

  mutating func take<Number: FixedWidthInteger>() throws(RecordProblem) -> Number {
    try take(MemoryLayout<Number>.size).reduce(0) { $0 << 8 | Number(truncatingIfNeeded: $1) }
  }

  mutating func take(_ count: Int) throws(RecordProblem) -> ArraySlice<UInt8> {
    guard rest.count >= count else { throw .damaged }
    defer { rest.removeFirst(count) }
    return rest.prefix(count)
  }
}

extension StoreInformation {
  /// Reads a record, and translates its problem.
  ///
  /// - Parameters:
  ///   - key: The key of the record.
  ///   - operation: The operation, for errors.
  ///   - read: A closure that reads the record.
  /// - Throws: `StoreError` with `corrupted` or `versionMismatch`.
  func reading<Record>(
    _ key: StoreKey, for operation: StoreOperation, _ read: () throws(RecordProblem) -> Record
  ) throws -> Record {
    do {
      return try read()
    } catch {
      let isDamaged = error == .damaged
      throw StoreError(
        isDamaged ? .corrupted : .versionMismatch, during: operation, store: name, key: key,
        message: isDamaged
          ? "a record of the coordination is damaged; remove the entry when no program uses it, after which the tokens of "
            + "a lock begin at 1 again"
          : "a record of the coordination was written by a newer version of Larder", underlying: error)
    }
  }
}

extension DataStore {
  /// Removes entries of a range in parts, and throws the first problem after all others are removed.
  ///
  /// - Parameters:
  ///   - range: The range of keys.
  ///   - partSize: The maximum number of keys in a part.
  ///   - removePart: A closure that receives keys, and returns the number of those that it has removed, and the error of
  ///     an entry that cannot be read.
  /// - Returns: The number of removed entries.
  func removing(
    in range: KeyRange, partSize: Int,
    _ removePart: (_ keys: [StoreKey]) async throws -> (count: Int, problem: (any Error)?)
  ) async throws -> Int {
    var (count, remaining) = (0, range)
    var firstProblem: (any Error)?
    while true {
      let keys = try await keys(in: remaining, limit: partSize)
      guard let last = keys.last else { break }
      let (removed, problem) = try await removePart(keys)
      count += removed
      firstProblem = firstProblem ?? problem
      remaining = try remaining.rest(behind: last, of: information.name, during: .keys)
    }
    if let firstProblem { throw firstProblem }
    return count
  }
}
