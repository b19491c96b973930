"""Starts ``dualloop up``, sends it one command, reads the result, and stops it: what a first visitor does."""

import os
import signal
import subprocess
import sys

import httpx

COMMAND = {
    "type": "device.control",
    "payload": {"entity": "climate.living_room", "action": "set_temperature", "value": 26},
}


def main(dualloop: str) -> None:
    env = os.environ | {"DUALLOOP_PORT": "0"}  # it finds one that no client is given meanwhile
    with subprocess.Popen([dualloop, "up"], env=env, stdout=subprocess.PIPE, text=True) as up:
        assert up.stdout is not None
        try:
            url = ""
            for line in up.stdout:
                print(line, end="")
                if line.startswith("Ready"):
                    url = line.split()[-1]
                    break
            with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
                ack = client.post("/v1/commands", json=COMMAND)
                print(ack.status_code, ack.text)
                assert ack.status_code == 202, "not accepted"
                answer = client.get(ack.json()["links"]["result"], params={"wait": 20})
                print(answer.status_code, answer.text)
            assert answer.status_code == 200, "no result within 20 s"
            assert answer.json()["status"] == "SUCCEEDED"
        finally:
            up.send_signal(signal.SIGINT)
            print(up.stdout.read(), end="")
        assert up.wait() == 0


if __name__ == "__main__":
    main(sys.argv[1])
