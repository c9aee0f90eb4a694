#if HTTPCache
/// A part of a representation that is stored in one body.
struct StoredPart: Sendable, Equatable {
  /// The bytes of the representation.
  var range: Range<Int64>

  /// The body that has them.
  var body: BodyIdentifier

  /// The place in the representation of the first byte of the body.
  var bodyStart: Int64

  /// The place of the part's bytes in the body.
  var rangeInBody: Range<Int64> {
    (range.lowerBound - bodyStart)..<(range.upperBound - bodyStart)
  }
}

/// The random identifier of a stored body: 16 bytes.
struct BodyIdentifier: Sendable, Hashable {
  /// The first eight bytes, as a number in big-endian order.
  var high: UInt64

  /// The last eight bytes, as a number in big-endian order.
  var low: UInt64
}

extension [StoredPart] {
  /// Returns the pieces that make up some ranges of the representation, in order.
  ///
  /// - Parameter ranges: The ranges. Bytes that no part has are left out.
  func pieces(of ranges: [Range<Int64>]) -> [StoredPart] {
    ranges.flatMap { range in
      compactMap { part in
        let piece = part.range.clamped(to: range)
        return piece.isEmpty ? nil : StoredPart(range: piece, body: part.body, bodyStart: part.bodyStart)
      }
    }
  }
}
#endif
