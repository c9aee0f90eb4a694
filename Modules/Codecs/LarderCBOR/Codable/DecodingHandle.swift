#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The decoder of a level, which is also its container for a single value.
struct DecodingHandle: BitwiseCopyable {
  let state: DecodingState
  let index: Int
  let id: Int

  @inline(never)
  static func finished() -> DecodingError {
    DecodingError.dataCorrupted(
      DecodingError.Context(codingPath: [], debugDescription: "The decoding was finished before."))
  }
}

extension DecodingHandle: Decoder {
  var codingPath: [any CodingKey] { state.path(to: self) }

  var userInfo: [CodingUserInfoKey: Any] { state.reader?.pointee.userInfo ?? [:] }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    try state.keyedContainer(self, keyedBy: type)
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    if let first = try state.firstByte(self), first &>> 5 != 4, let own = try state.ownForm(self, as: .array) {
      return try UnkeyedCBORDecodingContainer(own)
    }
    return try UnkeyedCBORDecodingContainer(self)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer { self }
}

extension DecodingHandle: SingleValueDecodingContainer {
  func decodeNil() -> Bool {
    do {
      let level = try state.level(self)
      guard let reader = state.reader else { return false }
      reader.pointee.next = level.pointee.start
      guard reader.pointee.readNull() else { return false }
      level.pointee.end = reader.pointee.next
      return true
    } catch {
      // There is nobody to take the error now; what is decoded next gets one.
      return false
    }
  }

  /// Reads all of the level's value.
  @inline(__always)
  private func read<Value>(_ body: (UnsafeMutablePointer<CBORReader>) throws -> Value) throws -> Value {
    let level = try state.level(self)
    guard let reader = state.reader else { throw DecodingHandle.finished() }
    reader.pointee.next = level.pointee.start
    reader.pointee.depth = level.pointee.depth
    let value = try body(reader)
    // The levels may have moved.
    state.levels[index].end = reader.pointee.next
    return value
  }

  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try read { _ in try state.decode(type) } }
  func decode(_ type: Bool.Type) throws -> Bool { try read { try $0.pointee.readBool() } }
  func decode(_ type: String.Type) throws -> String { try read { try $0.pointee.readText() } }
  func decode(_ type: Double.Type) throws -> Double {
    try read { reader in
      // It may be that of `Date(from: decoder)`. A field or an element that is a date is refused as a number.
      if reader.pointee.isNextADate { return try Date(from: &reader.pointee).timeIntervalSinceReferenceDate }
      return try reader.pointee.readFloat(Double.self)
    }
  }
  func decode(_ type: Float.Type) throws -> Float { try read { try Float(from: &$0.pointee) } }
  func decode(_ type: Int.Type) throws -> Int { try read { try $0.pointee.readInteger(Int.self) } }
  func decode(_ type: Int8.Type) throws -> Int8 { try read { try $0.pointee.readInteger(Int8.self) } }
  func decode(_ type: Int16.Type) throws -> Int16 { try read { try $0.pointee.readInteger(Int16.self) } }
  func decode(_ type: Int32.Type) throws -> Int32 { try read { try $0.pointee.readInteger(Int32.self) } }
  func decode(_ type: Int64.Type) throws -> Int64 { try read { try $0.pointee.readInteger(Int64.self) } }
  func decode(_ type: UInt.Type) throws -> UInt { try read { try $0.pointee.readInteger(UInt.self) } }
  func decode(_ type: UInt8.Type) throws -> UInt8 { try read { try $0.pointee.readInteger(UInt8.self) } }
  func decode(_ type: UInt16.Type) throws -> UInt16 { try read { try $0.pointee.readInteger(UInt16.self) } }
  func decode(_ type: UInt32.Type) throws -> UInt32 { try read { try $0.pointee.readInteger(UInt32.self) } }
  func decode(_ type: UInt64.Type) throws -> UInt64 { try read { try $0.pointee.readInteger(UInt64.self) } }
  func decode(_ type: Int128.Type) throws -> Int128 { try read { try Int128(from: &$0.pointee) } }
  func decode(_ type: UInt128.Type) throws -> UInt128 { try read { try UInt128(from: &$0.pointee) } }
}
