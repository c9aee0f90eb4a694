#if Crypto
import Crypto
import Foundation
import Larder
import LarderCBOR
import LarderTesting
import TestSupport
import Testing

@testable import LarderCrypto

/// Values that are encrypted: their bytes, what makes them unreadable, and what an update leaves as it is.
@Suite struct EncryptedCodecTests {
  /// The value `hello, larder` of the entry `user:1` and the purpose `users`, as cwt for Python encrypted it.
  static let golden = """
    d08343a10103a204485aa8cf3d1bc03fca054c6465666768696a6b6c6d6e6f581d\
    207eb20a16c576f25f103b8da8eddbc235eecb5e26ac5125c4c73006a2
    """
  static let goldenChaCha = """
    d08344a1011818a204485aa8cf3d1bc03fca054c6465666768696a6b6c6d6e6f581d\
    5c74d7a6f789563e9aac711a800073baf010c3395cafb6658ad54f0296
    """
  static let goldenWithoutKey = """
    d08343a10103a204485aa8cf3d1bc03fca054c6465666768696a6b6c6d6e6f581d\
    207eb20a16c576f25f103b8da8fd93b347b552994768ef7ad49c1cc66e
    """
  static let plain = Array("hello, larder".utf8)

  @Test func `golden values are read`() async throws {
    let codec = RawCodec.raw.encrypted(with: try await SampleRing.open(), purpose: "users")
    #expect(try codec.value(of: bytes(hexadecimal: Self.golden)) == Self.plain)
    #expect(try codec.value(of: bytes(hexadecimal: Self.goldenChaCha)) == Self.plain)
    #expect(try codec.value(of: bytes(hexadecimal: Self.goldenWithoutKey), key: nil) == Self.plain)
  }

  @Test(arguments: EncryptionAlgorithm.allCases)
  func `every length round trips in the shortest form`(algorithm: EncryptionAlgorithm) async throws {
    let codec = RawCodec.raw.encrypted(with: try await SampleRing.open(), purpose: "users", algorithm: algorithm)
    let overhead = algorithm == .aesGCM ? 49 : 50
    for (length, headSize) in [(0, 1), (7, 1), (8, 2), (200, 2), (239, 2), (240, 3), (65_519, 3), (65_520, 5)] {
      let value = (0..<length).map { UInt8(truncatingIfNeeded: $0 &* 31) }
      let stored = try codec.bytes(of: value)
      #expect(stored.count == length + overhead - 2 + headSize)
      #expect(try codec.value(of: stored) == value)
      #expect(try codec.bytes(of: value) != stored)
      let item = try stored.withUnsafeBytes { try KeyRing.KeyID(ofEncryptedValue: $0.bytes) }
      #expect(item.description == SampleRing.first.id)
    }
  }

  @Test func `the ciphertext is that of Swift crypto with the documented data`() async throws {
    let codec = RawCodec.raw.encrypted(with: try await SampleRing.open(), purpose: "users")
    let stored = try codec.bytes(of: Self.plain)
    #expect(try stored.prefix(19) == ArraySlice(bytes(hexadecimal: "d08343a10103a204485aa8cf3d1bc03fca054c")))
    let data = try bytes(
      hexadecimal: "83 68 456e637279707430 43a10103 55 83 66 6c6172646572 65 7573657273 46 757365723a31")
    let sealed = try AES.GCM.seal(
      Self.plain, using: SymmetricKey(data: Array(0..<32)), nonce: AES.GCM.Nonce(data: stored[19..<31]),
      authenticating: data)
    #expect(Array(stored.dropFirst(33)) == Array(sealed.ciphertext + sealed.tag))
  }

  @Test func `names and format`() async throws {
    let ring = try await SampleRing.open()
    let codec = try CBORCodec<Int>().versioned(1, ValueMigration(from: 0, .cbor(Int.self)) { $0 })
      .encrypted(with: ring, purpose: "numbers")
    #expect(codec.name == "cbor+v1+cose")
    #expect(codec.adoptedNames == ["cbor+cose"])
    #expect(codec.format == .cbor)
    // A version around an encrypted value is read too, because no encrypted value begins like a version.
    let around = try VersionedCodec(CBORCodec<Int>().encrypted(with: ring, purpose: "numbers"), version: 1)
    #expect(try around.value(of: around.bytes(of: 5)) == 5)
  }

  @Test(arguments: EncryptionAlgorithm.allCases)
  func `every changed bit and every cut is found`(algorithm: EncryptionAlgorithm) async throws {
    let codec = RawCodec.raw.encrypted(with: try await SampleRing.open(), purpose: "users", algorithm: algorithm)
    let stored = try codec.bytes(of: Self.plain)
    let keyIDs = algorithm == .aesGCM ? 9..<17 : 10..<18
    for bit in 0..<stored.count * 8 {
      var changed = stored
      changed[bit / 8] ^= 1 << (bit % 8)
      expectFailure(keyIDs.contains(bit / 8) ? .keyUnavailable : .corrupted, "bit \(bit)") {
        try codec.value(of: changed)
      }
    }
    for count in 0..<stored.count {
      expectFailure(.corrupted, "cut at \(count)") { try codec.value(of: Array(stored.prefix(count))) }
    }
    expectFailure(.corrupted, "a byte more") { try codec.value(of: stored + [0]) }
  }

  @Test func `other forms of the same message are refused`() async throws {
    let codec = RawCodec.raw.encrypted(with: try await SampleRing.open(), purpose: "users")
    let golden = try bytes(hexadecimal: Self.golden)
    let content = Array(golden[33...])
    let start = Array(golden[..<31])
    for (form, head): (String, [UInt8]) in [
      ("a longer head", [0x59, 0, 29]), ("an indefinite length", [0x5F, 0x58, 29]),
      ("a length of eight bytes", [0x5B, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]),
      ("a negative length", [0x5B, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]), ("text", [0x78, 29]),
    ] {
      expectFailure(.corrupted, form) { try codec.value(of: start + head + content) }
    }
    // A tag alone is shorter than a nonce and a tag.
    expectFailure(.corrupted, "no tag") { try codec.value(of: start + [0x4F] + content.prefix(15)) }
    expectFailure(.corrupted, "plain") { try codec.value(of: Self.plain + Array(repeating: 0, count: 60)) }
  }

  @Test func `exchanged entries purposes and rings are found`() async throws {
    let ring = try await SampleRing.open()
    let otherRing = try await KeyRing.open(in: MemoryKeySource(SampleRing.text(SampleRing.second)))
    // Lengths are part of the authenticated data, so a purpose and a key never run together.
    let keys: [StoreKey?] = ["a", "ab", "b", "user:1", "user:2", StoreKey(bytes: [0xF6]), nil]
    let purposes = ["", "a", "users", "posts", "users\0a"]
    var values: [(Int, Int, [UInt8])] = []
    for (k, key) in keys.enumerated() {
      for (p, purpose) in purposes.enumerated() {
        values.append((k, p, try RawCodec.raw.encrypted(with: ring, purpose: purpose).bytes(of: Self.plain, key: key)))
      }
    }
    for (k, key) in keys.enumerated() {
      for (p, purpose) in purposes.enumerated() {
        let codec = RawCodec.raw.encrypted(with: ring, purpose: purpose)
        let other = RawCodec.raw.encrypted(with: otherRing, purpose: purpose)
        for value in values {
          if (k, p) == (value.0, value.1) {
            #expect(try codec.value(of: value.2, key: key) == Self.plain)
          } else {
            expectFailure(.corrupted, "\(value) as \(k), \(p)") { try codec.value(of: value.2, key: key) }
          }
          expectFailure(.keyUnavailable, "another ring") { try other.value(of: value.2, key: key) }
        }
      }
    }
  }

  @Test func `an update that changes nothing keeps the stored bytes`() async throws {
    let ring = try await SampleRing.open()
    let codec = CBORCodec<[String]>().encrypted(with: ring, purpose: "users")
    let stored = try codec.bytes(of: ["Ada"])
    #expect(try codec.bytes(of: ["Ada"], stored: stored) == stored)
    #expect(try codec.bytes(of: ["Bob"], stored: stored) != stored)
    #expect(try codec.bytes(of: ["Ada"]) != stored)
    // Bytes that cannot be opened are replaced.
    for other in [Array(stored.dropLast()), [], try codec.bytes(of: ["Ada"], key: "user:2")] {
      let replaced = try codec.bytes(of: ["Ada"], stored: other)
      #expect(replaced != other)
      #expect(try codec.value(of: replaced) == ["Ada"])
    }
    let chaCha = CBORCodec<[String]>().encrypted(with: ring, purpose: "users", algorithm: .chaChaPoly)
    #expect(try chaCha.bytes(of: ["Ada"], stored: stored) != stored)
    let count = ring.keys[0].sealCount
    #expect(try codec.bytes(of: ["Ada"], stored: stored) == stored)
    #expect(ring.keys[0].sealCount == count)

    try await ring.rotate()
    let rotated = try codec.bytes(of: ["Ada"], stored: stored)
    #expect(rotated != stored)
    #expect(try rotated.withUnsafeBytes { try KeyRing.KeyID(ofEncryptedValue: $0.bytes) } == ring.primary)
    #expect(try codec.bytes(of: ["Ada"], stored: rotated) == rotated)
    #expect(try codec.value(of: stored) == ["Ada"])
  }

  @Test func `two encryptions of the same value keep the stored bytes too`() async throws {
    let inner = RawCodec.raw.encrypted(with: try await SampleRing.open(), purpose: "inner")
    let codec = inner.encrypted(with: try await SampleRing.open(), purpose: "outer")
    let stored = try codec.bytes(of: Self.plain)
    #expect(try codec.bytes(of: Self.plain, stored: stored) == stored)
    #expect(try codec.value(of: stored) == Self.plain)
  }

  private func expectFailure<Result>(
    _ code: StoreError.Code, _ what: String, sourceLocation: SourceLocation = #_sourceLocation,
    _ body: () throws -> Result
  ) {
    do {
      _ = try body()
      Issue.record("\(what): decoded", sourceLocation: sourceLocation)
    } catch {
      let found = (error as? any StoreErrorConvertible)?.storeErrorCode
      #expect(found == code, "\(what)", sourceLocation: sourceLocation)
      #expect(found != .corrupted || error is EncryptedValueError, sourceLocation: sourceLocation)
    }
  }
}
#endif
