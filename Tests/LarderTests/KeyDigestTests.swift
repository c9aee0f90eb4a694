import Foundation
import Larder
import LarderTesting
import Testing

@Suite struct KeyDigestTests {
  private static func digest(_ bytes: [UInt8]) -> String {
    bytes.withUnsafeBytes { Hexadecimal.text(of: KeyDigest.digest(of: $0)) }
  }

  /// The example values that NIST publishes for FIPS 180-4.
  @Test func `agrees with the published examples`() {
    #expect(
      KeyDigestTests.digest([]) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
    #expect(
      KeyDigestTests.digest(Array("abc".utf8)) == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    #expect(
      KeyDigestTests.digest(Array("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq".utf8))
        == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
    #expect(
      KeyDigestTests.digest([UInt8](repeating: UInt8(ascii: "a"), count: 1_000_000))
        == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0")
  }

  /// Every length up to three blocks, as computed by Python's `hashlib`.
  ///
  /// The digests of the byte strings 0, 1, 2, … of each length are hashed together:
  /// `hashlib.sha256(b"".join(hashlib.sha256(bytes(range(n))).digest() for n in range(193))).hexdigest()`
  @Test func `agrees with hashlib for every length of the last block`() {
    let digests = (0...192).flatMap { count in
      (0..<count).map { UInt8($0) }.withUnsafeBytes { KeyDigest.digest(of: $0) }
    }
    #expect(KeyDigestTests.digest(digests) == "79eb9ac3f5b94a477808fa851afb214408e787ed21459d0503b2fac4a445fee6")
  }
}
