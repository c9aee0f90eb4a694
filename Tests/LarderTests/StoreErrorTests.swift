import Larder
import Testing

@Suite struct StoreErrorTests {
  private static let codes: [StoreError.Code] = [
    .invalidKey, .invalidArgument, .valueTooLarge, .encodingFailed, .corrupted, .closed, .locked, .full, .ioFailed,
    .notPermitted, .notFound, .unsupported, .unrecognizedFormat, .versionMismatch, .timedOut,
  ]

  @Test func `is caught by its code`() {
    func name(of error: any Error) -> String {
      do {
        throw error
      } catch StoreError.Code.full {
        return "full"
      } catch StoreError.Code.locked {
        return "locked"
      } catch is StoreError {
        return "another"
      } catch {
        return "foreign"
      }
    }
    #expect(name(of: StoreError(.full, during: .apply, message: "")) == "full")
    #expect(name(of: StoreError(.locked, during: .open, message: "")) == "locked")
    #expect(name(of: StoreError(.closed, during: .value, message: "")) == "another")
    #expect(name(of: CancellationError()) == "foreign")
  }

  @Test func `codes are an open set of distinct names`() {
    #expect(Set(StoreErrorTests.codes).count == StoreErrorTests.codes.count)
    let code = StoreError.Code(rawValue: "quotaOfMine")
    #expect(!StoreErrorTests.codes.contains(code))
    #expect(code ~= StoreError(code, during: .apply, message: ""))
    #expect(StoreError.Code(rawValue: "full") == .full)
    #expect(StoreErrorTests.codes.map(\.description) == StoreErrorTests.codes.map(\.rawValue))
  }

  @Test func `defaults to no change and no retry`() {
    let error = StoreError(.full, during: .apply, message: "no room")
    #expect(error.outcome == .nothingChanged)
    #expect(!error.isRetryable)
    #expect(error.store.isEmpty)
    #expect(error.key == nil)
    #expect(error.underlying == nil)
  }

  @Test func `shows no key by default`() {
    let error = StoreError(
      .corrupted, during: .value, store: "users", key: "ada@example.org", message: "the value cannot be decoded",
      underlying: CancellationError(), outcome: .unknown)
    for text in ["\(error)", error.description, String(reflecting: error), "\([error])", String(describing: error)] {
      #expect(!text.contains("ada"))
      #expect(text.contains("corrupted: users: value: the value cannot be decoded (key <redacted>)"))
      #expect(text.contains("CancellationError"))
      #expect(text.contains("unknown"))
      #expect(!text.contains("\n"))
    }
    #expect(error.detailedDescription.contains(#"(key "ada@example.org")"#))
  }

  @Test func `a key that is not text is shown as bytes`() {
    let error = StoreError(.corrupted, during: .value, key: StoreKey(bytes: [0x80, 0xC0]), message: "damaged")
    #expect(error.detailedDescription == "corrupted: value: damaged (key 0x80c0)")
    #expect(error.description == "corrupted: value: damaged (key <redacted>)")
  }

  @Test func `the underlying error is hidden the same way`() {
    let inner = StoreError(.ioFailed, during: .value, store: "file", key: "ada@example.org", message: "no such sector")
    let outer = StoreError(.corrupted, during: .value, store: "users", message: "damaged", underlying: inner)
    #expect(!outer.description.contains("ada"))
    #expect(outer.description == "corrupted: users: value: damaged (\(inner))")
    #expect(outer.detailedDescription == "corrupted: users: value: damaged (\(inner.detailedDescription))")
  }
}
