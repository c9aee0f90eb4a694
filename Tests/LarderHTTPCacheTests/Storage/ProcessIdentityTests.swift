#if HTTPCache
import Foundation
import Larder
import TestSupport
import Testing

@testable import LarderHTTPCache

/// The processes of a host in a test, which start and end when the test says so.
final class TestProcesses: Sendable {
  private let running = Locked<[UInt32: UInt64]>([:])

  /// Starts a process.
  ///
  /// - Parameters:
  ///   - number: The number of the process.
  ///   - time: The time of its start.
  ///   - place: The host, boot and namespace, of which the processes of this object are those of 1.
  /// - Returns: The processes as the new one sees them.
  func start(_ number: UInt32, at time: UInt64, place: UInt8 = 1) -> ProcessTable {
    if place == 1 { running.withLock { $0[number] = time } }
    return ProcessTable(own: .sample(number, at: time, place: place)) { [self] number in
      running.withLock { $0[number] }.map { .started($0) } ?? .none
    }
  }

  func end(_ number: UInt32) {
    running.withLock { $0[number] = nil }
  }
}

extension ProcessIdentity {
  static func sample(_ number: UInt32, at time: UInt64, place: UInt8 = 1) -> ProcessIdentity {
    ProcessIdentity(place: [UInt8](repeating: place, count: placeLength), number: number, start: time)
  }
}

@Suite struct ProcessIdentityTests {
  private let own = ProcessIdentity.sample(10, at: 500)

  private func hasEnded(_ other: ProcessIdentity?, _ finding: ProcessFinding) -> Bool {
    ProcessTable(own: own) { _ in finding }.hasEnded(other)
  }

  @Test func `only a process that is gone has ended`() {
    let other = ProcessIdentity.sample(9, at: 400)
    #expect(hasEnded(other, .none))
    #expect(!hasEnded(other, .started(400)))
    #expect(hasEnded(other, .started(450)), "the number was given again")
    #expect(!hasEnded(other, .unknown))
    #expect(hasEnded(.sample(10, at: 400), .started(500)), "the number was given to this process")
    #expect(!hasEnded(own, .none))
  }

  @Test func `in doubt a process is alive`() {
    #expect(!hasEnded(nil, .none))
    #expect(!hasEnded(.sample(9, at: 400, place: 2), .none), "the number means nothing here")
    #expect(!ProcessTable(own: nil) { _ in .none }.hasEnded(.sample(9, at: 400)))
  }

  @Test func `a forked process is another one`() {
    let start = Locked<UInt64>(1)
    let own = OwnIdentity { .sample(UInt32(start.withLock { $0 }), at: start.withLock { $0 }) }
    let number = Locked<Int32>(1)
    let table = ProcessTable(own: own.identity(ofNumber: number.withLock { $0 })) { _ in .unknown }
    #expect(table.own == .sample(1, at: 1))
    start.withLock { $0 = 2 }
    #expect(table.own == .sample(1, at: 1), "it is read once")
    number.withLock { $0 = 2 }
    #expect(table.own == .sample(2, at: 2))
    // A system that identifies no process is asked once.
    start.withLock { $0 = 3 }
    #expect(table.own == .sample(2, at: 2))
  }

  @Test func `a mark is read as it was written`() {
    for process in [nil, own, .sample(.max, at: .max, place: 255)] {
      let mark = BodyMark(owner: 1, process: process, renewed: -5, count: 7, reserved: 9)
      #expect(mark.bytes.count == BodyMark.length)
      #expect(BodyMark(mark.bytes) == mark)
      for length in 0..<BodyMark.length { #expect(BodyMark(Array(mark.bytes.prefix(length))) == nil) }
    }
    #expect(BodyMark(owner: 1, process: nil, renewed: 0, count: 7, reserved: 0).reserved == 7)
    // A mark that has stored more than it reserves is damaged.
    var bytes = BodyMark(owner: 1, process: own, renewed: 0, count: 7, reserved: 9).bytes
    bytes[bytes.count - 1] = 6
    #expect(BodyMark(bytes) == nil)
  }

  @Test func `the line of a process is read`() {
    let rest = " S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
    for name in ["(cache)", "(a) R 1 2)", "()", "((x) (y))"] {
      let entry = ProcessEntry("42 \(name)\(rest)")
      #expect(entry?.number == 42 && entry?.start == 4711, "\(name)")
      #expect(entry?.hasEnded == false)
    }
    #expect(ProcessEntry("42 (a)\(rest.replacing(" S", with: " Z"))")?.hasEnded == true, "a zombie")
    for text in ["", "42", "42 (a", "42 (a) S 1 2", "0 (a)\(rest)", "-1 (a)\(rest)", "x (a)\(rest)"] {
      #expect(ProcessEntry(text) == nil, "\(text)")
    }
  }

  #if os(Linux)
  @Test func `the system knows this process and its children`() throws {
    let table = ProcessTable.system
    let own = try #require(table.own)
    #expect(own.number == UInt32(getpid()))
    #expect(table.find(own.number) == .started(own.start))
    #expect(!table.hasEnded(own))
    #expect(table.hasEnded(ProcessIdentity(place: own.place, number: own.number, start: own.start - 1)))
    let files = [String](repeating: "/dev/null", count: 3)
    let child = try CommandRun.start(["/usr/bin/env", "sleep", "600"], files: files)
    let number = UInt32(child)
    guard case .started(let start) = table.find(number) else {
      kill(child, SIGKILL)
      Issue.record("the child is not found")
      return
    }
    let identity = ProcessIdentity(place: own.place, number: number, start: start)
    #expect(!table.hasEnded(identity))
    kill(child, SIGKILL)
    #expect(try CommandRun.wait(for: child) == SIGKILL)
    #expect(table.hasEnded(identity))
    #expect(table.find(0) == .unknown && table.find(.max) == .unknown)
  }
  #endif
}
#endif
