/// Creates well-formed CBOR in its preferred form, with text and bytes of all kinds but without NaN payloads.
enum RandomItem {
  static func bytes(using random: inout some RandomNumberGenerator, depth: Int = 0) -> [UInt8] {
    let kind = Int.random(in: 0..<(depth < 4 ? 10 : 7), using: &random)
    switch kind {
    case 0: return head(0, number(using: &random))
    case 1: return head(0x20, number(using: &random))
    case 2:
      let bytes = (0..<Int.random(in: 0..<30, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      return head(0x40, UInt64(bytes.count)) + bytes
    case 3: return text(using: &random)
    case 4: return [0xF4, 0xF5, 0xF6, 0xF7].randomElement(using: &random).map { [$0] } ?? [0xF6]
    case 5:
      let bits = UInt16.random(in: 0...UInt16.max, using: &random)
      // NaN payloads are not shown in JSON.
      return bits & 0x7C00 == 0x7C00 ? [0xF9, 0x7C, 0] : [0xF9, UInt8(bits >> 8), UInt8(bits & 0xFF)]
    case 6: return head(0xE0, UInt64([0, 19, 32, 255].randomElement(using: &random) ?? 0))
    case 7: return head(0xC0, UInt64.random(in: 4...2000, using: &random)) + bytes(using: &random, depth: depth + 1)
    case 8:
      let count = Int.random(in: 0..<(depth == 0 ? 40 : 5), using: &random)
      return (0..<count).reduce(head(0x80, UInt64(count))) { bytes, _ in
        bytes + self.bytes(using: &random, depth: depth + 1)
      }
    default:
      let count = Int.random(in: 0..<(depth == 0 ? 40 : 5), using: &random)
      let isObject = Bool.random(using: &random)
      return (0..<count).reduce(head(0xA0, UInt64(count))) { bytes, _ in
        bytes + (isObject ? text(using: &random) : self.bytes(using: &random, depth: depth + 1))
          + self.bytes(using: &random, depth: depth + 1)
      }
    }
  }

  private static func number(using random: inout some RandomNumberGenerator) -> UInt64 {
    random.next() >> UInt64.random(in: 0..<64, using: &random)
  }

  private static func text(using random: inout some RandomNumberGenerator) -> [UInt8] {
    let characters: [Character] = ["a", "$", "\"", "\\", "\n", "\0", "é", "水", "🐄", "e\u{301}"]
    let marks = ["$tag", "$$tag", "$base64", "$map", "$value", "$$$float"]
    let count = Int.random(in: 0..<8, using: &random)
    let text =
      count == 7
      ? marks.randomElement(using: &random) ?? ""
      : String((0..<count * 4).compactMap { _ in characters.randomElement(using: &random) })
    return head(0x60, UInt64(text.utf8.count)) + Array(text.utf8)
  }

  static func head(_ major: UInt8, _ argument: UInt64) -> [UInt8] {
    func bytes(_ count: UInt64) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: argument >> (8 * (count - 1 - $0))) }
    }
    return switch argument {
    case ..<24: [major | UInt8(argument)]
    case ...0xFF: [major | 24] + bytes(1)
    case ...0xFFFF: [major | 25] + bytes(2)
    case ...0xFFFF_FFFF: [major | 26] + bytes(4)
    default: [major | 27] + bytes(8)
    }
  }
}
