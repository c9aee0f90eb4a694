/// The stored form of the state, which the article <doc:LimiterFormat> describes.
extension LimiterState {
  /// The version of the format.
  ///
  /// Version 1 has neither recent starts nor the time of the latest one.
  private static let formatVersion: UInt8 = 2

  /// The reason why a record cannot be read.
  public enum RecordProblem: Error, Sendable, Hashable {
    /// The record is damaged.
    case damaged
    /// The record has a newer format.
    case version(UInt8)
  }

  /// The number of bytes before the permits, of a permit, and of the checksum.
  private static let (headLength, permitLength, checksumLength) = (87, 24, 4)

  /// The largest size of a record, in bytes.
  static let maximumSize = headLength + LimiterConfiguration.concurrencies.upperBound * permitLength + checksumLength

  /// The record of the state.
  public var record: [UInt8] {
    var bytes = [Self.formatVersion]
    bytes.reserveCapacity(Self.headLength + permits.count * Self.permitLength + Self.checksumLength)
    bytes += origin.bigEndianBytes
    bytes += rate.fullAt.bigEndianBytes
    bytes += rate.recentStarts.bigEndianBytes
    bytes += rate.recentUntil.bigEndianBytes
    bytes += rate.presentAtLeast.bigEndianBytes
    bytes += latestStart.bigEndianBytes
    bytes += (reservation?.owner ?? 0).bigEndianBytes
    bytes += (reservation?.starts ?? 0).bigEndianBytes
    bytes += (reservation?.end ?? 0).bigEndianBytes
    bytes += (reservation?.duration ?? 0).bigEndianBytes
    bytes += UInt16(clamping: permits.count).bigEndianBytes
    for permit in permits {
      bytes += permit.id.bigEndianBytes
      bytes += permit.lease.bigEndianBytes
      bytes += permit.end.bigEndianBytes
    }
    bytes += CRC32C.checksum(of: bytes).bigEndianBytes
    return bytes
  }

  /// Reads a record.
  ///
  /// - Parameter record: The record.
  /// - Throws: ``RecordProblem``.
  public init(record: [UInt8]) throws(RecordProblem) {
    guard let version = record.first else { throw .damaged }
    guard version <= Self.formatVersion else { throw .version(version) }
    let headLength = version == 1 ? Self.headLength - 24 : Self.headLength
    guard version > 0, record.count >= headLength + Self.checksumLength else { throw .damaged }
    var rest = record.dropFirst()
    origin = rest.takeNumber()
    let fullAt: Int64 = rest.takeNumber()
    rate =
      version == 1
      ? RateLimitState(fullAt: fullAt)
      : RateLimitState(
        fullAt: fullAt, recentStarts: rest.takeNumber(), recentUntil: rest.takeNumber(),
        presentAtLeast: rest.takeNumber())
    latestStart = rest.takeNumber()
    let owner: UInt64 = rest.takeNumber()
    let kept = Reservation(
      owner: owner, starts: rest.takeNumber(), end: rest.takeNumber(), duration: rest.takeNumber())
    reservation = owner == 0 ? nil : kept
    let count: UInt16 = rest.takeNumber()
    guard rest.count == Int(count) * Self.permitLength + Self.checksumLength,
      CRC32C.checksum(of: record.dropLast(Self.checksumLength)) == UInt32(bigEndianBytes: rest.suffix(4))
    else { throw .damaged }
    permits = (0..<count).map { _ in
      Permit(id: rest.takeNumber(), lease: rest.takeNumber(), end: rest.takeNumber())
    }
  }
}

extension ArraySlice<UInt8> {
  /// Removes the first bytes and returns them as a number.
  fileprivate mutating func takeNumber<Number: FixedWidthInteger>() -> Number {
    let size = MemoryLayout<Number>.size
    defer { removeFirst(size) }
    return Number(bigEndianBytes: prefix(size))
  }
}
