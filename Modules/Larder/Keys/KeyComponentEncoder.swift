#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Writes components in the tuple encoding of FoundationDB.
struct KeyComponentEncoder {
  private(set) var bytes: [UInt8] = []

  mutating func append(_ components: [KeyComponent], isNested: Bool = false) {
    for component in components {
      append(component, isNested: isNested)
    }
  }

  private mutating func append(_ component: KeyComponent, isNested: Bool) {
    switch component {
    case .null:
      bytes.append(KeyComponentCode.null)
      // Within a nested component a bare zero would end it.
      if isNested { bytes.append(KeyComponentCode.escape) }
    case .bytes(let content):
      bytes.append(KeyComponentCode.bytes)
      appendEscaped(content)
    case .string(let string):
      bytes.append(KeyComponentCode.string)
      appendEscaped(string.utf8)
    case .nested(let components):
      bytes.append(KeyComponentCode.nested)
      append(components, isNested: true)
      bytes.append(KeyComponentCode.terminator)
    case .integer(let integer):
      append(integer)
    case .float(let float):
      bytes.append(KeyComponentCode.float)
      appendBigEndian(KeyComponentCode.ordered(float.bitPattern))
    case .double(let double):
      bytes.append(KeyComponentCode.double)
      appendBigEndian(KeyComponentCode.ordered(double.bitPattern))
    case .boolean(let boolean):
      bytes.append(boolean ? KeyComponentCode.true : KeyComponentCode.false)
    case .uuid(let uuid):
      bytes.append(KeyComponentCode.uuid)
      withUnsafeBytes(of: uuid.uuid) { bytes.append(contentsOf: $0) }
    }
  }

  private mutating func appendEscaped(_ content: some Sequence<UInt8>) {
    for byte in content {
      bytes.append(byte)
      if byte == KeyComponentCode.terminator { bytes.append(KeyComponentCode.escape) }
    }
    bytes.append(KeyComponentCode.terminator)
  }

  private mutating func append(_ integer: Int128) {
    let length = 16 - integer.magnitude.leadingZeroBitCount / 8
    // A negative number is the complement of its magnitude, so that more negative sorts first.
    let pattern = integer < 0 ? ~integer.magnitude : integer.magnitude
    switch (integer < 0, length <= 8) {
    case (false, true): bytes.append(KeyComponentCode.zero + UInt8(length))
    case (true, true): bytes.append(KeyComponentCode.zero - UInt8(length))
    case (false, false): bytes += [KeyComponentCode.longPositive, UInt8(length)]
    case (true, false): bytes += [KeyComponentCode.longNegative, ~UInt8(length)]
    }
    withUnsafeBytes(of: pattern.bigEndian) { bytes.append(contentsOf: $0.suffix(length)) }
  }

  private mutating func appendBigEndian(_ integer: some FixedWidthInteger) {
    withUnsafeBytes(of: integer.bigEndian) { bytes.append(contentsOf: $0) }
  }
}
