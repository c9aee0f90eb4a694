import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct LockWaitTests {
  private func error(_ code: StoreError.Code, during operation: StoreOperation = .open) -> StoreError {
    StoreError(code, during: operation, message: "no")
  }

  @Test func `it retries while the store is locked`() async throws {
    var attempts = 0
    let result = try await LockWait(upTo: .seconds(600)).run {
      attempts += 1
      if attempts < 4 { throw error(.locked) }
      return "open"
    }
    #expect(result == "open" && attempts == 4)
  }

  @Test func `without time it tries once`() async throws {
    var attempts = 0
    await #expect(throws: StoreError.self) {
      try await LockWait(upTo: .zero).run {
        attempts += 1
        throw error(.locked)
      }
    }
    #expect(attempts == 1)
  }

  @Test func `any other failure is final`() async throws {
    for error in [error(.notFound), error(.ioFailed), error(.locked, during: .apply)] {
      var attempts = 0
      await #expect(throws: StoreError.self) {
        try await LockWait(upTo: .seconds(600)).run {
          attempts += 1
          throw error
        }
      }
      #expect(attempts == 1)
    }
  }
}
