import Foundation

/// Compares bytes as unsigned numbers.
///
/// The result is negative if `first` is less, and 0 if all bytes are equal.
func compare(_ first: UnsafeRawPointer, _ second: UnsafeRawPointer, count: Int) -> Int {
  Int(memcmp(first, second, count))
}

/// Returns whether two byte ranges are equal.
///
/// It is meant for counts that the compiler knows.
@inline(__always)
func areEqual(_ first: UnsafeRawPointer, _ second: UnsafeRawPointer, count: Int) -> Bool {
  if count >= 8 {
    var offset = 0
    while offset &+ 8 < count {
      if first.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
        != second.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
      {
        return false
      }
      offset &+= 8
    }
    // The last eight bytes overlap the ones before.
    return first.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
      == second.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
  }
  if count >= 4 {
    return first.loadUnaligned(as: UInt32.self) == second.loadUnaligned(as: UInt32.self)
      && first.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
        == second.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
  }
  if count >= 2 {
    return first.loadUnaligned(as: UInt16.self) == second.loadUnaligned(as: UInt16.self)
      && first.load(fromByteOffset: count &- 1, as: UInt8.self)
        == second.load(fromByteOffset: count &- 1, as: UInt8.self)
  }
  return count == 0 || first.load(as: UInt8.self) == second.load(as: UInt8.self)
}

/// Returns whether all bytes are ASCII.
@inline(__always)
func isASCII(_ bytes: UnsafeRawBufferPointer) -> Bool {
  let count = bytes.count
  var bits: UInt64
  // The last load overlaps the ones before.
  if count >= 8 {
    bits = bytes.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
    var index = 0
    while index &+ 8 < count {
      bits |= bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self)
      index &+= 8
    }
  } else if count >= 4 {
    bits = UInt64(
      bytes.loadUnaligned(as: UInt32.self) | bytes.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self))
  } else {
    bits = 0
    for byte in bytes { bits |= UInt64(byte) }
  }
  return bits & 0x8080_8080_8080_8080 == 0
}

/// Copies bytes, without a function call if there are at most 32.
@inline(__always)
func copy(_ bytes: UnsafeRawPointer, into memory: UnsafeMutableRawPointer, count: Int) {
  if count > 32 {
    memory.copyMemory(from: bytes, byteCount: count)
  } else if count >= 16 {
    // The last load overlaps the first.
    let (first, last) = (
      bytes.loadUnaligned(as: SIMD16<UInt8>.self),
      bytes.loadUnaligned(fromByteOffset: count &- 16, as: SIMD16<UInt8>.self)
    )
    memory.storeBytes(of: first, as: SIMD16<UInt8>.self)
    memory.storeBytes(of: last, toByteOffset: count &- 16, as: SIMD16<UInt8>.self)
  } else if count >= 8 {
    let (first, last) = (
      bytes.loadUnaligned(as: UInt64.self), bytes.loadUnaligned(fromByteOffset: count &- 8, as: UInt64.self)
    )
    memory.storeBytes(of: first, as: UInt64.self)
    memory.storeBytes(of: last, toByteOffset: count &- 8, as: UInt64.self)
  } else if count >= 4 {
    let (first, last) = (
      bytes.loadUnaligned(as: UInt32.self), bytes.loadUnaligned(fromByteOffset: count &- 4, as: UInt32.self)
    )
    memory.storeBytes(of: first, as: UInt32.self)
    memory.storeBytes(of: last, toByteOffset: count &- 4, as: UInt32.self)
  } else {
    for index in 0..<count {
      memory.storeBytes(of: bytes.load(fromByteOffset: index, as: UInt8.self), toByteOffset: index, as: UInt8.self)
    }
  }
}
