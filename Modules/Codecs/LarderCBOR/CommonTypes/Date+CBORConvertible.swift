#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

extension Date: CBORConvertible {
  /// The seconds from the beginning of 1970 to that of 2001, from which a `Date` counts.
  private static let epochOffset: Double = 978_307_200

  /// Writes the seconds since 1970 with tag 1 where that is exact, as it is for whole seconds; and with tag 1001 (extended
  /// time, RFC 9581) as a binary fraction otherwise, which is always exact.
  ///
  /// A `Date` is a `Double` that counts from 2001. About half of those of our days lose a bit when they count from 1970.
  public func write(to writer: inout CBORWriter) throws {
    let seconds = timeIntervalSinceReferenceDate
    let sum = seconds + Date.epochOffset
    guard sum - Date.epochOffset == seconds || seconds.isNaN else {
      try writer.checkDepth(EpochFraction.depth)
      return EpochFraction.write(secondsSince2001: seconds, to: &writer)
    }
    try writer.checkDepth(1)
    writer.reserve(1)
    writer.putByte(0xC1)
    if let whole = Int64(exactly: sum) { writer.putInteger(whole) } else { writer.putFloat(sum) }
  }

  /// Reads a date of tag 1, tag 1001, or tag 0, which is text in the form of RFC 3339; or a number without a tag, the
  /// seconds since 2001, as the own `Codable` of `Date` writes it.
  ///
  /// - Throws: `DecodingError` where the item is none of these.
  public init(from reader: inout CBORReader) throws {
    if reader.remainingCount > 13 {
      // The forms that are written, without the detour.
      let first = reader.next.loadUnaligned(as: UInt16.self)
      if first == UInt16(bigEndian: 0xC1FB) || first == UInt16(bigEndian: 0xC11A) {
        reader.next += 1
        self.init(timeIntervalSinceReferenceDate: try reader.readFloat(Date.self) - Date.epochOffset)
        return
      }
      if first == UInt16(bigEndian: 0xD903), reader.next.load(fromByteOffset: 2, as: UInt8.self) == 0xE9 {
        reader.next += 3
        if let seconds = EpochFraction.readShortForm(from: &reader) {
          self.init(timeIntervalSinceReferenceDate: seconds)
          return
        }
        self.init(timeIntervalSinceReferenceDate: try EpochFraction.readExtendedTime(from: &reader))
        return
      }
    }
    let start = reader.offset
    let tag = try reader.readTag()
    let seconds: Double
    switch tag {
    // The second says only that CBOR follows.
    case nil, 55799: seconds = try reader.readFloat(Date.self)
    case 1: seconds = try reader.readFloat(Date.self) - Date.epochOffset
    case 1001: seconds = try EpochFraction.readExtendedTime(from: &reader)
    case 0:
      guard let time = RFC3339Time(try reader.readText()) else {
        throw reader.corrupted("The text is no date in the form of RFC 3339.", at: start)
      }
      seconds = time.secondsSince1970 - Date.epochOffset
    default:
      throw DecodingError.typeMismatch(
        Date.self, reader.context("The item has no tag that makes it a date.", at: start))
    }
    self.init(timeIntervalSinceReferenceDate: seconds)
  }
}
