"""Texts that hold a secret, in the shapes that transcripts hold them, with new secrets for each seed.

A template's `<<kind>>` becomes a secret of that kind: `pw` (a password), `sym` (one with signs), `word` (letters and a
digit), `t32` (32 letters and digits), `x40` (hexadecimal), `b44` (base64), `u16` (capitals and digits 2-7), `d12`
(digits), `l20` (lower case and digits), `w64` (with `-` and `_`).
"""

from __future__ import annotations

import base64
import json
import random
import re
import string
from collections.abc import Callable

_SETS = {
    "t": string.ascii_letters + string.digits,
    "x": "0123456789abcdef",
    "b": string.ascii_letters + string.digits + "+/",
    "u": string.ascii_uppercase + "234567",
    "d": string.digits,
    "l": string.ascii_lowercase + string.digits,
    "w": string.ascii_letters + string.digits + "-_",
}


def secret(rng: random.Random, kind: str) -> str:
    """A secret of a kind."""
    if kind == "pw":
        return "".join(rng.choices(_SETS["t"], k=rng.randint(10, 20))) + rng.choice("23456789")
    if kind == "sym":
        return (
            "".join(rng.choices(_SETS["t"], k=6))
            + rng.choice("!@#%^*-_+.")
            + "".join(rng.choices(_SETS["t"], k=6))
            + "7"
        )
    if kind == "word":
        return rng.choice(["hunter", "tiger", "monkey", "sunshine", "dragon"]) + str(rng.randint(10, 9999))
    letters, count = _SETS[kind[0]], int(kind[1:])
    while True:
        found = "".join(rng.choices(letters, k=count))
        if kind[0] == "d" or count < 8 or (re.search(r"\d", found) and re.search("[A-Za-z]", found)):
            return found


def fill_template(rng: random.Random, template: str) -> tuple[str, list[str]]:
    """The template with secrets, and those."""
    cores: list[str] = []

    def put(match: re.Match[str]) -> str:
        cores.append(secret(rng, match[1]))
        return cores[-1]

    return re.sub(r"<<(\w+)>>", put, template), cores


# A line each; "\n" and "\t" are written as such. `name | template`.
TEMPLATES = r"""
kube-key-data | client-key-data: <<b120>>==
kube-key-data-yaml | users:\n- name: admin\n  user:\n    client-certificate-data: LS0tLS1C\n    client-key-data: <<b160>>=
kube-token | users:\n- name: ci\n  user:\n    token: <<w40>>
env-pwd | DB_PWD=<<pw>>
env-pwd-symbols | DB_PWD=<<sym>>
env-pass | DB_PASS=<<word>>
env-pass-quoted | DB_PASS='correct horse <<pw>> battery'
env-pass-double | export DB_PASS="with space <<pw>>"
env-pat | GITHUB_PAT=<<t40>>
env-azure-pat | AZURE_DEVOPS_PAT=<<l52>>
env-token | SLACK_TOKEN=<<t24>>
env-key | STRIPE_KEY=<<t32>>
env-api-key | WEATHER_API_KEY=<<x32>>
env-secret-key | SECRET_KEY=<<b50>>
env-suffix | DB_PASSWORD_PROD=<<pw>>
env-numbered | API_KEY_2=<<t32>>
env-pgpassword | PGPASSWORD=<<pw>> psql -h db.internal -U app
env-mysql-pwd | MYSQL_PWD=<<pw>> mysql -u root
env-redis | REDISCLI_AUTH=<<t24>> redis-cli
env-lower | db_password=<<pw>>
env-smtp | SMTP_PASSWORD=<<sym>>
env-restic | RESTIC_PASSWORD=<<pw>>
env-django | DJANGO_SECRET_KEY='<<t50>>'
env-passphrase | GPG_PASSPHRASE=<<pw>>
env-credential | APP_CREDENTIALS=<<t32>>
env-docker | docker run -e POSTGRES_PASSWORD=<<pw>> -d postgres
env-compose | environment:\n  - MYSQL_ROOT_PASSWORD=<<pw>>\n  - X=1
env-compose-map | environment:\n  MYSQL_ROOT_PASSWORD: <<pw>>\n  X: 1
env-cmd | set DB_PASSWORD=<<pw>>
env-powershell | $env:DB_PASSWORD = "<<pw>>"
env-fish | set -x API_TOKEN <<t32>>
env-csh | setenv DB_PASSWORD <<pw>>
env-dockerfile | ENV DB_PASSWORD <<pw>>
env-dockerfile-eq | ENV API_TOKEN=<<t32>>
env-arg | ARG NPM_TOKEN=<<t36>>
heroku | heroku config:set API_SECRET=<<t32>>
gh-secret | gh secret set DEPLOY_TOKEN --body <<t40>>
fly-secret | fly secrets set DATABASE_PASSWORD=<<pw>>
aws-configure | AWS Access Key ID [None]: AKIA<<u16>>\nAWS Secret Access Key [None]: <<b40>>\nDefault region name [None]: eu-west-1
aws-configure-again | AWS Secret Access Key [****************ABCD]: <<b40>>
aws-configure-set | aws configure set aws_secret_access_key <<b40>>
aws-file | [default]\naws_access_key_id = AKIA<<u16>>\naws_secret_access_key = <<b40>>
aws-one-line | AKIA<<u16>> <<b40>>
aws-one-line-colon | AKIA<<u16>>:<<b40>>
aws-csv | Access key ID,Secret access key\nAKIA<<u16>>,<<b40>>
aws-sentence | the key is AKIA<<u16>> and the secret <<b40>> for staging
aws-session | aws_session_token = <<b200>>==
aws-json | {"AccessKeyId": "ASIA<<u16>>", "SecretAccessKey": "<<b40>>", "SessionToken": "<<b120>>"}
aws-export | export AWS_ACCESS_KEY_ID=AKIA<<u16>> AWS_SECRET_ACCESS_KEY=<<b40>>
curl-user | curl --user admin:<<pw>> https://api.acme.test/v1
curl-user-eq | curl --user=admin:<<pw>> https://api.acme.test/v1
curl-u | curl -u admin:<<pw>> https://api.acme.test/v1
curl-u-quoted | curl -s -u 'admin:<<sym>>' https://api.acme.test
curl-u-glued | curl -uadmin:<<pw>> https://api.acme.test
curl-proxy | curl --proxy-user bob:<<pw>> https://api.acme.test
curl-late | curl -X POST https://api.acme.test/v1/items -H 'Accept: application/json' -u ci:<<pw>>
curl-bearer | curl -H "Authorization: Bearer <<w40>>" https://api.acme.test
curl-token | curl -H 'Authorization: token <<x40>>' https://api.acme.test
curl-basic | curl -H "Authorization: Basic <<b32>>=" https://api.acme.test
curl-apikey | curl -H "X-Api-Key: <<t32>>" https://api.acme.test
curl-private | curl -H "PRIVATE-TOKEN: <<w20>>" https://git.acme.test
curl-data | curl -d 'user=bob&password=<<pw>>' https://api.acme.test/login
curl-json | curl --data '{"username": "bob", "password": "<<pw>>"}' https://api.acme.test
curl-cookie | curl -H 'Cookie: session=<<t32>>' https://api.acme.test
wget-password | wget --user=bob --password=<<pw>> https://acme.test/f
httpie | http -a bob:<<pw>> GET https://api.acme.test
docker-login | docker login -u bob -p <<pw>> ghcr.io
docker-login-long | docker login --username bob --password <<pw>> ghcr.io
docker-stdin | echo <<pw>> | docker login -u bob --password-stdin
podman-login | podman login -u=bob -p=<<pw>> quay.io
helm-login | helm registry login -u bob -p <<pw>> registry.acme.test
htpasswd | htpasswd -b .htpasswd bob <<pw>>
htpasswd-create | htpasswd -cb /etc/nginx/.htpasswd bob <<sym>>
htpasswd-bcrypt | htpasswd -nbB bob <<pw>>
sudo | echo <<pw>> | sudo -S apt-get update
sudo-quoted | echo '<<sym>>' | sudo -S systemctl restart nginx
sudo-printf | printf '%s' '<<pw>>' | sudo -S ls
sudo-here | sudo -S ls <<<"<<pw>>"
chpasswd | echo "bob:<<pw>>" | chpasswd
openssl-passin | openssl rsa -in key.pem -passin pass:<<pw>> -out plain.pem
openssl-passout | openssl genrsa -aes256 -passout pass:<<sym>> 4096
openssl-k | openssl enc -aes-256-cbc -k <<pw>> -in a -out b
keytool | keytool -list -keystore a.jks -storepass <<pw>>
ssh-keygen | ssh-keygen -t ed25519 -N "<<pw>>" -f id
sshpass | sshpass -p <<pw>> ssh bob@host
sshpass-glued | sshpass -p'<<sym>>' ssh bob@host
mysql-p | mysql -u root -p<<pw>> shop
mysqldump | mysqldump --user=root --password=<<pw>> shop
mongo | mongosh -u admin -p <<pw>> mongodb://db
redis-a | redis-cli -h cache -a <<pw>> ping
psql-url | psql postgresql://app:<<pw>>@db.internal/shop
psql-dsn | psql "host=db user=app password=<<pw>> dbname=shop"
ldapsearch | ldapsearch -x -D cn=admin -w <<pw>> -b dc=acme
smbclient | smbclient //nas/share -U 'bob%<<pw>>'
sqlcmd | sqlcmd -S db -U sa -P <<pw>> -Q "select 1"
az-login | az login --service-principal -u app -p <<w34>> --tenant acme
zip | zip -P <<pw>> a.zip a.txt
7z | 7z a -p<<pw>> a.7z docs
gpg | gpg --batch --passphrase <<pw>> -d a.gpg
ansible-extra | ansible-playbook site.yml -e "ansible_become_pass=<<pw>>"
npm-config | npm config set //registry.acme.test/:_authToken <<w36>>
npmrc | //registry.acme.test/:_authToken=<<w36>>
npmrc-auth | _auth=<<b32>>=
kubectl | kubectl create secret generic db --from-literal=password=<<pw>>
helm-set | helm upgrade app ./chart --set postgresql.auth.password=<<pw>>
vault-put | vault kv put secret/app password=<<pw>>
mount | mount -t cifs //nas/x /mnt -o username=bob,password=<<pw>>
aws-ssm | aws ssm put-parameter --name /app/DB_PASSWORD --value <<pw>> --type SecureString
aws-secret | aws secretsmanager create-secret --name db-password --secret-string <<pw>>
nmcli | nmcli dev wifi connect home password <<pw>>
net-user | net user bob <<pw>> /add
flag-token | deploy --token <<t32>> --verbose
flag-token-eq | deploy --token=<<t32>>
flag-key | deploy --api-key <<t32>>
flag-password | tool --password <<sym>>
argv | ["deploy", "--password", "<<pw>>"]
prompt-for | Password for 'https://bob@git.acme.test': <<pw>>
prompt-user | Password for user app: <<pw>>
prompt-host | bob@host's password: <<pw>>
prompt-enter | Enter password: <<pw>>
prompt-sudo | [sudo] password for bob: <<pw>>
prompt-passphrase | Enter passphrase for key '/home/bob/.ssh/id_rsa': <<pw>>
prompt-token | Enter your API token: <<t32>>
prose-is | the password is <<pw>>
prose-is-quoted | The root password is "<<sym>>".
prose-colon | Username: bob, Password: <<pw>>
prose-bold | **Password:** `<<pw>>`
prose-code | Use password `<<sym>>` for staging.
markdown-table | user: bob\npassword: <<word>>
xml | <password><<pw>></password>
xml-attribute | <server username="bob" password="<<pw>>"/>
xml-type | <Password encrypted="false"><<sym>></Password>
xml-maven | <server><id>x</id><username>bob</username><password><<pw>></password></server>
xml-add | <add key="ApiKey" value="<<t32>>"/>
xml-add-password | <add key="ClearTextPassword" value="<<pw>>" />
xml-property | <property name="connection.password" value="<<pw>>"/>
xml-property-body | <property name="password"><<pw>></property>
xml-android | <string name="api_key"><<t32>></string>
xml-plist | <key>Password</key>\n<string><<pw>></string>
xml-secret | <clientSecret><<t32>></clientSecret>
ansible-ini | host1 ansible_user=bob ansible_become_pass=<<pw>>
ansible-yaml | ansible_become_pass: <<pw>>
ansible-password | ansible_password: "<<sym>>"
ansible-ssh | ansible_ssh_pass=<<pw>>
wireguard | [Interface]\nPrivateKey = <<b43>>=\nAddress = 10.0.0.1/24
wireguard-psk | [Peer]\nPresharedKey = <<b43>>=
wifi-psk | network={\n ssid="home"\n psk="<<pw>>"\n}
terraform-default | variable "db_password" {\n  type = string\n  default = "<<pw>>"\n}
terraform-described | variable "api_token" {\n  description = "Token of the API"\n  type        = string\n  sensitive   = true\n  default     = "<<t32>>"\n}
terraform-one-line | variable "db_password" { default = "<<sym>>" }
terraform-attribute | resource "aws_db_instance" "x" {\n  password = "<<pw>>"\n}
terraform-tfvars | db_password = "<<pw>>"
terraform-admin | administrator_login_password = "<<pw>>"
url-key | https://maps.acme.test/api?q=1&key=<<t39>>
url-key-first | GET /v1/x?key=<<t32>> HTTP/1.1
url-token | https://acme.test/cb?token=<<t32>>&x=1
url-access | https://acme.test/#access_token=<<w40>>
url-apikey | https://api.acme.test/data?apikey=<<x32>>
url-api-key | https://api.acme.test/data?api_key=<<l32>>&fmt=json
url-password | jdbc:postgresql://db/shop?user=app&password=<<pw>>
url-sig | https://x.blob.acme.test/c?sv=2020&sig=<<b43>>%3D
url-userinfo | redis://:<<pw>>@cache:6379/0
url-git | git clone https://bob:<<t40>>@git.acme.test/x.git
url-git-token | git remote set-url origin https://<<t40>>@git.acme.test/x.git
url-amqp | amqp://app:<<pw>>@mq:5672/%2f
url-mongo | mongodb+srv://app:<<pw>>@cluster0.acme.test/x
conn-string | Server=db;Database=shop;User Id=sa;Password=<<pw>>;
conn-pwd | Driver={ODBC};Server=db;Uid=sa;Pwd=<<pw>>;
conn-azure | DefaultEndpointsProtocol=https;AccountName=x;AccountKey=<<b86>>==;EndpointSuffix=core.windows.net
conn-servicebus | Endpoint=sb://x/;SharedAccessKeyName=Root;SharedAccessKey=<<b43>>=
array-tokens | {"tokens": ["<<t32>>", "<<t32>>"]}
array-keys | {"api_keys": [\n  "<<t40>>",\n  "<<t40>>"\n]}
array-python | TOKENS = ['<<t32>>', '<<t32>>']
array-yaml | tokens:\n  - <<t32>>\n  - <<t32>>
array-secrets | secrets = ["<<x40>>", "<<x40>>"]
json-password | {"user": "bob", "password": "<<pw>>"}
json-camel | {"dbPassword": "<<pw>>", "port": 1}
json-secret | {"client_secret": "<<w40>>"}
json-private | {"private_key_id": "x", "privateKey": "<<b44>>"}
json-pair | {"name": "DB_PASSWORD", "value": "<<pw>>"}
json-token | {"access_token":"<<w64>>","token_type":"bearer"}
json-refresh | {"refresh_token": "<<w64>>"}
yaml-password | database:\n  user: app\n  password: <<pw>>
yaml-quoted | password: '<<sym>>'
yaml-block | password: |\n  <<pw>>\nother: 1
yaml-folded | api_token: >-\n    <<t32>>
yaml-pair | - name: DB_PASSWORD\n  value: <<pw>>
yaml-pair-quoted | - name: API_TOKEN\n  value: "<<t32>>"
yaml-spring | spring.datasource.password: <<pw>>
yaml-api-key | apiKey: <<t32>>
yaml-word | password: <<word>>
toml | [database]\npassword = "<<pw>>"
toml-token | token = "<<t36>>"
ini | [db]\npasswd = <<pw>>
ini-colon | password: <<pw>>
properties | spring.datasource.password=<<pw>>
pypirc | [pypi]\nusername = bob\npassword = <<pw>>
my-cnf | [client]\nuser=root\npassword=<<pw>>
netrc | machine git.acme.test login bob password <<pw>>
netrc-lines | machine git.acme.test\n  login bob\n  password <<pw>>
pgpass | db.internal:5432:shop:app:<<pw>>
redis-conf | requirepass <<pw>>
python | password = "<<pw>>"
python-single | PASSWORD = '<<pw>>'
python-typed | password: str = "<<pw>>"
python-kwarg | connect(host="db", password="<<pw>>")
python-dict | conf = {'db_password': '<<pw>>'}
python-environ | os.environ["DB_PASSWORD"] = "<<pw>>"
python-setdefault | os.environ.setdefault("API_TOKEN", "<<t32>>")
python-getenv | os.getenv("DB_PASSWORD", "<<pw>>")
python-auth | requests.get(url, headers={"Authorization": "Bearer <<w40>>"})
python-item | config["api_key"] = "<<t32>>"
js-const | const apiKey = "<<t32>>";
js-object | const c = { user: 'bob', password: '<<pw>>' };
js-env | process.env.DB_PASSWORD = '<<pw>>';
js-template | const token = `<<t32>>`;
js-header | headers: {'x-api-key': '<<t32>>'}
ts-typed | const password: string = "<<pw>>";
go | password := "<<pw>>"
go-struct | Config{Password: "<<pw>>", User: "bob"}
go-const | const apiToken string = "<<t32>>"
rust | let password = "<<pw>>";
java | String password = "<<pw>>";
c-define | #define WIFI_PASSWORD "<<pw>>"
c-array | char password[] = "<<pw>>";
csharp | var clientSecret = "<<w34>>";
php | define('DB_PASSWORD', '<<pw>>');
php-array | 'password' => '<<pw>>',
php-var | $db_pass = '<<pw>>';
ruby | password: "<<pw>>"
ruby-hash | :password => "<<pw>>"
swift | let apiKey = "<<t32>>"
sql-create | CREATE USER app WITH PASSWORD '<<pw>>';
sql-alter | ALTER USER app PASSWORD '<<pw>>';
sql-mysql | CREATE USER 'app'@'%' IDENTIFIED BY '<<pw>>';
sql-grant | GRANT ALL ON *.* TO app IDENTIFIED BY '<<sym>>' WITH GRANT OPTION;
lang-de | Passwort: <<pw>>
lang-de-2 | Kennwort = <<pw>>
lang-de-is | Das Passwort ist <<pw>>
lang-es | contraseña: <<pw>>
lang-es-ascii | contrasena=<<pw>>
lang-es-clave | clave: <<pw>>
lang-fr | mot de passe : <<pw>>
lang-fr-mdp | mdp: <<pw>>
lang-fr-fused | motdepasse=<<pw>>
lang-it | parola d'ordine / password: <<pw>>
lang-pt | senha: <<pw>>
lang-pt-2 | palavra-passe: <<pw>>
lang-pl | hasło: <<pw>>
lang-cs | heslo: <<pw>>
lang-hu | jelszó: <<pw>>
lang-nl | wachtwoord: <<pw>>
lang-sv | lösenord: <<pw>>
lang-da | adgangskode: <<pw>>
lang-no | passord: <<pw>>
lang-fi | salasana: <<pw>>
lang-tr | şifre: <<pw>>
lang-ru | пароль: <<pw>>
lang-ru-caps | Пароль: <<sym>>
lang-uk | пароль = <<pw>>
lang-el | κωδικός: <<pw>>
lang-zh | 密码: <<pw>>
lang-zh-wide | 密码：<<pw>>
lang-zh-is | 数据库的密码是<<pw>>
lang-zh-tw | 密碼：<<pw>>
lang-ja | パスワード: <<pw>>
lang-ja-wide | パスワード：<<pw>>
lang-ja-is | パスワードは<<pw>>
lang-ko | 비밀번호: <<pw>>
lang-ar | كلمة المرور: <<pw>>
lang-he | סיסמה: <<pw>>
lang-hi | पासवर्ड: <<pw>>
lang-th | รหัสผ่าน: <<pw>>
lang-vi | mật khẩu: <<pw>>
diff-added | +DB_PASSWORD=<<pw>>
diff-removed | -  password: "<<pw>>"
numbered-line |     12\tAPI_SECRET=<<t32>>
grep-line | config/.env:3:DB_PASSWORD=<<pw>>
log | 2026-01-02 INFO connecting with password=<<pw>> to db
expect | expect "assword:"\nsend "<<pw>>\\r"
k8s-secret | kind: Secret\ndata:\n  password: <<b24>>
k8s-string | stringData:\n  password: <<pw>>
gitlab-ci | variables:\n  DEPLOY_TOKEN: <<w20>>
rails | secret_key_base: <<x128>>
oauth | client_id=abc&client_secret=<<w40>>&grant_type=code
jwt-two-lines | eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0\n.<<w43>>
jwt-cut | eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkJvYiJ9.<<w20>>\n<<w23>>
jwt | eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.<<w43>>
backslash | export OPENAI_API_KEY=sk-proj-<<t24>>\\\n<<t24>>
backslash-indent | curl -H "Authorization: Bearer <<t20>>\\\n    <<t24>>"
provider-github | ghp_<<t36>>
provider-github-fine | github_pat_<<t22>>_<<t59>>
provider-anthropic | sk-ant-api03-<<w93>>AA
provider-openai | sk-proj-<<w74>>T3BlbkFJ<<w74>>
provider-openai-old | sk-<<t20>>T3BlbkFJ<<t20>>
provider-gitlab | glpat-<<w20>>
provider-slack | xoxb-<<d12>>-<<d12>>-<<t24>>
provider-slack-hook | https://hooks.slack.com/services/T<<u8>>/B<<u8>>/<<t24>>
provider-discord-hook | https://discord.com/api/webhooks/<<d18>>/<<w68>>
provider-google | AIza<<w35>>
provider-stripe | sk_live_<<t24>>
provider-stripe-hook | whsec_<<t32>>
provider-twilio | SK<<x32>>
provider-sendgrid | SG.<<t22>>.<<t43>>
provider-mailgun | key-<<x32>>
provider-mailchimp | <<x32>>-us12
provider-npm | npm_<<t36>>
provider-pypi | pypi-AgEIcHlwaS5vcmc<<w70>>
provider-hf | hf_<<t34>>
provider-databricks | dapi<<x32>>
provider-do | dop_v1_<<x64>>
provider-telegram | <<d9>>:AA<<t33>>
provider-shopify | shpat_<<x32>>
provider-vault | hvs.<<w95>>
provider-age | AGE-SECRET-KEY-1<<u58>>
provider-figma | figd_<<t40>>
provider-artifactory | AKCp<<t69>>
provider-dynatrace | dt0c01.<<t24>>.<<t64>>
provider-1password | ops_eyJ<<t260>>
provider-alibaba | LTAI<<t20>>
provider-sonar | squ_<<x40>>
provider-sourcegraph | sgp_<<x16>>_<<x40>>
provider-sendinblue | xkeysib-<<x64>>-<<t16>>
provider-atlassian | ATATT3<<t186>>
provider-doppler | dp.pt.<<t43>>
provider-terraform | <<l14>>.atlasv1.<<t65>>
provider-octopus | API-<<u26>>
provider-openshift | sha256~<<w43>>
provider-heroku | heroku_key = "<<x8>>-<<x4>>-4<<x3>>-a<<x3>>-<<x12>>"
provider-datadog | DATADOG_KEY: <<x32>>
provider-azure | client: <<t3>>8Q~<<t34>>
provider-mapbox | mapbox = "pk.<<l60>>.<<l22>>"
more-1 | export GH_TOKEN=<<t40>>; gh pr list
more-2 | mysql --host=db -u app --password='<<sym>>'
more-3 | PGPASSWORD='<<sym>>' pg_dump
more-4 | conn = psycopg2.connect("dbname=x user=y password=<<pw>> host=z")
more-5 | engine = create_engine("postgresql+psycopg2://app:<<sym>>@db/shop")
more-6 | redis = Redis(host='h', password='<<pw>>')
more-7 | AWS_SECRET_ACCESS_KEY="<<b40>>"
more-8 | aws_secret_access_key: <<b40>>
more-9 | "SecretAccessKey": "<<b40>>",
more-10 | secretKey=<<b40>>
more-11 | api-key: <<t32>>
more-12 | x-api-key: <<w40>>
more-13 | Authorization: ApiKey <<b60>>==
more-14 | Proxy-Authorization: Basic <<b28>>==
more-15 | Set-Cookie: sid=<<t32>>; HttpOnly
more-16 | session_secret: <<t32>>
more-17 | JWT_SECRET=<<pw>>
more-18 | jwt.secret=<<t40>>
more-19 | signing_key = "<<x64>>"
more-20 | ENCRYPTION_KEY=<<b43>>=
more-21 | fernet_key = <<w43>>=
more-22 | SENTRY_AUTH_TOKEN=<<x64>>
more-24 | user=bob pass=<<pw>>
more-25 | user: bob, pass: <<pw>>
more-26 | pw: <<pw>>
more-27 | pw=<<pw>>
more-28 | credentials: bob:<<pw>>
more-29 | PIN code and passcode: <<pw>>
more-30 | admin_password=<<sym>>
more-31 | root password: <<sym>>
more-32 | Your new password is: <<pw>>
more-33 | temporary password: <<sym>>
more-34 | The API key is <<t32>>
more-35 | my token is <<t40>>
more-36 | here is the key: <<t40>>
more-37 | OPENAI_API_KEY: sk-<<t48>>
more-38 | ANTHROPIC_API_KEY='sk-ant-api03-<<w93>>AA'
more-39 | gpg --passphrase-fd 0 --passphrase='<<pw>>'
more-40 | ftp://bob:<<pw>>@ftp.acme.test/
more-41 | smtp://bob%40acme.test:<<pw>>@mail:587
more-42 | git config --global url."https://bob:<<t40>>@github.com/".insteadOf "https://github.com/"
more-43 | echo "<<t40>>" | gh auth login --with-token
more-44 | gh auth login --with-token <<< "<<t40>>"
more-45 | curl https://api.acme.test -H "apikey: <<t32>>"
more-46 | curl -H "X-Auth-Token: <<w40>>"
more-47 | curl "https://api.acme.test/v1?client_secret=<<w32>>&x=1"
more-48 | curl -F password=<<pw>> https://x.test
more-49 | curl --user "bob:<<sym>>" -k https://x.test
more-50 | curl -sSL --user=bob:<<pw>> x.test
more-51 | http POST x.test password=<<pw>>
more-52 | docker login registry.test --username=bob --password=<<pw>>
more-53 | kubectl config set-credentials bob --token=<<t60>>
more-54 | kubectl create secret docker-registry r --docker-password=<<pw>> --docker-username=b
more-55 | helm install x --set-string db.password=<<pw>>
more-56 | --from-literal="API_TOKEN=<<t32>>"
more-57 | token: "<<x40>>"
more-58 | client-secret = '<<w40>>'
more-59 | const SECRET = '<<t32>>'
more-60 | let API_KEY: &str = "<<t32>>";
more-61 | var token = '<<t36>>'
more-62 | private static final String PASSWORD = "<<pw>>";
more-64 | self.password = '<<pw>>'
more-65 | this.apiKey = "<<t32>>";
more-66 | auth=("bob", "<<pw>>")
more-67 | HTTPBasicAuth('bob', '<<pw>>')
more-68 | client.login("bob", "<<pw>>")
more-69 | ssh.connect(host, username="bob", password="<<sym>>")
more-70 | <input type="password" name="password" value="<<pw>>">
more-71 | <password>\n  <<pw>>\n</password>
more-72 | <db:password><<pw>></db:password>
more-73 | <value name="password"><<pw>></value>
more-74 | <Setting Name="ApiToken" Value="<<t32>>"/>
more-75 | password = <<pw>>  # the old one
more-76 | password: <<pw>> # comment
more-77 | password: "<<pw>>" // x
more-78 | DB_PASS="<<word>>"
more-79 | DB_PASSWD=<<pw>>
more-80 | ROOTPW=<<pw>>
more-81 | rootpw --plaintext <<pw>>
more-82 | ansible_sudo_pass=<<pw>>
more-83 | vault_db_password: <<pw>>
more-84 | snmp community and authPassword <<pw>>
more-85 | set system root-authentication plain-text-password-value "<<pw>>"
more-86 | enable secret 5 $1$abcd$<<t22>>
more-88 | wpa-psk "<<pw>>"
more-89 | wpa_passphrase=<<pw>>
more-90 | ssid=x password=<<pw>>
more-91 | PresharedKey=<<b43>>=
more-93 | echo <<b43>>= | wg pubkey
more-94 | export VAULT_TOKEN=s.<<t24>>
more-95 | NPM_TOKEN: <<w36>>
more-96 | machine x.test login y password <<sym>>
more-97 | Passwort für bob: <<pw>>
more-98 | Mot de passe pour bob : <<pw>>
more-99 | Contraseña de root: <<pw>>
more-100 | le mot de passe est <<pw>>
more-101 | la contraseña es <<pw>>
more-102 | 密码为<<pw>>
more-103 | 口令：<<pw>>
more-104 | пароль от базы: <<pw>>
more-105 | 비밀번호는 <<pw>> 입니다
more-106 | Passwort=<<pw>>
more-107 | DB_PASSWORT=<<pw>>
more-108 | "密码": "<<pw>>"
more-109 | 'contraseña' => '<<pw>>'
more-110 | passwords: ["<<pw>>", "<<pw>>"]
more-111 | {"keys": ["<<t40>>", "<<t40>>"]}
more-112 | ["ghp_<<t36>>", "ghp_<<t36>>"]
more-113 | {"token": {"value": "<<t32>>"}}
more-114 | {"api_key": {"default": "<<t32>>"}}
more-115 | {"credentials": {"username": "bob", "password": "<<pw>>"}}
more-116 | {"key":"DB_PASSWORD","value":"<<pw>>"}
more-117 | {"type":"secret","name":"x","secret":"<<t32>>"}
more-118 | [{"Name":"API_KEY","Value":"<<t32>>"}]
more-119 | variable "token" {\n  default = "<<t32>>"\n  type = string\n}
more-120 | TF_VAR_db_password=<<pw>>
more-121 | terraform apply -var="db_password=<<pw>>"
more-122 | terraform apply -var 'db_password=<<pw>>'
more-123 | master_password = "<<pw>>"
more-124 | output: password = <<pw>>
more-125 | Generated password: <<sym>>
more-127 | AccessKey: minioadmin\nSecretKey: <<t32>>
more-128 | MINIO_ROOT_PASSWORD=<<word>>
more-129 | s3cmd --access_key=AKIA<<u16>> --secret_key=<<b40>>
more-130 | aws_access_key_id=AKIA<<u16>>, aws_secret=<<b40>>
more-131 | AKIA<<u16>>\t<<b40>>
more-132 | access_key="AKIA<<u16>>", secret_key="<<b40>>"
more-133 | boto3.client('s3', aws_access_key_id='AKIA<<u16>>', aws_secret_access_key='<<b40>>')
more-134 | AWS_ACCESS_KEY_ID=AKIA<<u16>>\nAWS_SECRET_ACCESS_KEY=<<b40>>\nAWS_SESSION_TOKEN=<<b200>>
more-135 | Enter PEM pass phrase: <<pw>>
more-136 | Enter host password for user 'bob': <<pw>>
more-137 | Password for bob@CORP.TEST: <<pw>>
more-138 | (current) UNIX password: <<pw>>
more-139 | New password: <<sym>>
more-140 | Username for 'https://github.com': bob\nPassword for 'https://bob@github.com': ghp_<<t36>>
more-141 | ? Enter your access token: <<w40>>
more-142 | API Key: <<t32>>
more-143 | Secret key: <<t32>>
more-144 | Bearer token: <<w40>>
more-145 | openssl pkcs12 -export -passout pass:<<pw>> -in x
more-146 | openssl enc -d -aes-256-cbc -pass pass:<<sym>>
more-147 | openssl req -passin "pass:<<pw>>"
more-148 | java -Djavax.net.ssl.keyStorePassword=<<pw>> -jar a.jar
more-149 | java -Dspring.datasource.password=<<pw>>
more-150 | mvn deploy -Dgpg.passphrase=<<pw>>
more-151 | gradle -PsigningPassword=<<pw>>
more-152 | signingPassword=<<pw>>
more-153 | storePassword '<<pw>>'
more-154 | keyPassword "<<pw>>"
more-155 | //npm.pkg.github.com/:_authToken=ghp_<<t36>>
more-156 | always-auth=true\n_password=<<b24>>
more-157 | echo -n '<<sym>>' | docker login --username foo --password-stdin
more-158 | cat <<EOF > .env\nDB_PASSWORD=<<pw>>\nEOF
more-159 | sed -i 's/password=.*/password=<<pw>>/' app.conf
more-160 | sudo -S <<< '<<pw>>' ls
more-162 | echo "<<pw>>" | kinit bob
more-163 | expect -c 'spawn ssh x; expect "Password:"; send "<<pw>>\r"'
more-164 | sshpass -p"<<sym>>" scp a b:
more-165 | SSHPASS=<<pw>> sshpass -e ssh x
more-166 | htpasswd -bc f bob '<<sym>>'
more-167 | lftp -u bob,<<pw>> ftp.test
more-171 | mongodb://bob:<<sym>>@db:27017/x?authSource=admin
more-172 | amqps://u:<<pw>>@mq/vh
more-173 | DATABASE_URL=postgres://u:<<pw>>@h/d
more-174 | https://u:<<pw>>@h.test:8443/p
more-175 | sqlplus bob/<<pw>>@orcl
more-176 | ALTER LOGIN sa WITH PASSWORD = N'<<sym>>';
more-177 | CREATE LOGIN x WITH PASSWORD='<<pw>>'
more-178 | SET PASSWORD FOR 'bob'@'%' = PASSWORD('<<pw>>');
more-181 | config set requirepass "<<pw>>"
more-182 | "Password": "<<sym>>",
more-183 | "PASSWORD" : '<<pw>>'
more-184 | password\t<<pw>>
more-185 | | password | <<pw>> |
more-187 | password => <<pw>>
more-188 | `password`: `<<pw>>`
more-189 | - **API key**: `<<t32>>`
more-190 | * token = <<t40>>
more-191 | "--token", "<<t32>>"
more-192 | args: [--password=<<pw>>]
more-193 | command: ["--api-key", "<<t32>>"]
more-194 | passwd: '<<pw>>',
more-195 | db.password: ${DB_PASSWORD:<<pw>>}
more-196 | ${DB_PASSWORD:-<<pw>>}
more-197 | process.env.TOKEN || '<<t32>>'
more-198 | os.environ.get('API_KEY', '<<t32>>')
more-199 | getenv("SECRET_TOKEN") ?: "<<t32>>"
more-200 | -----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA<<b46>>\n<<b70>>\n<<b70>>
gitleaks-1password-secret | A3-<<u6>>-<<u11>>-<<u5>>-<<u5>>-<<u5>>
gitleaks-adobe | p8e-<<l32>>
gitleaks-airtable | pat<<t14>>.<<x64>>
gitleaks-authress | sc_<<l20>>.<<l5>>.acc_<<l20>>.<<w60>>
gitleaks-aws-a3t | A3TX<<u16>>
gitleaks-bedrock | ABSK<<b120>>=
gitleaks-clickhouse | 4b1d<<t38>>
gitleaks-clojars | CLOJARS_<<l60>>
gitleaks-cloudflare-origin | v1.0-<<x24>>-<<x146>>
gitleaks-defined-networking | dnkey-<<l26>>-<<l52>>
gitleaks-digitalocean-oauth | doo_v1_<<x64>>
gitleaks-digitalocean-refresh | dor_v1_<<x64>>
gitleaks-dropbox-short | dropbox = "sl.<<w135>>"
gitleaks-duffel | duffel_test_<<w43>>
gitleaks-easypost | EZAK<<t54>>
gitleaks-facebook | <<d15>>|<<t30>>
gitleaks-facebook-page | EAAC<<t120>>
gitleaks-flutterwave | FLWSECK_TEST-<<x32>>-X
gitleaks-fly | fm2_<<b120>>
gitleaks-frameio | fio-u-<<w64>>
gitleaks-freemius | "secret_key" => "sk_<<t29>>"
gitleaks-github-app | ghs_<<t36>>
gitleaks-github-oauth | gho_<<t36>>
gitleaks-github-refresh | ghr_<<t36>>
gitleaks-gitlab-job | glcbt-64_<<w20>>
gitleaks-gitlab-deploy | gldt-<<w20>>
gitleaks-gitlab-feature | glffct-<<w20>>
gitleaks-gitlab-feed | glft-<<w20>>
gitleaks-gitlab-mail | glimt-<<w25>>
gitleaks-gitlab-agent | glagent-<<w50>>
gitleaks-gitlab-oauth | gloas-<<w64>>
gitleaks-gitlab-trigger | glptt-<<x40>>
gitleaks-gitlab-runner | glrt-<<w20>>
gitleaks-gitlab-registration | GR1348941<<w20>>
gitleaks-gitlab-scim | glsoat-<<w20>>
gitleaks-gitlab-session | _gitlab_session=<<x32>>
gitleaks-gocardless | gocardless = "live_<<w40>>"
gitleaks-grafana-cloud | glc_<<b60>>
gitleaks-grafana-service | glsa_<<t32>>_<<x8>>
gitleaks-harness | pat.<<w22>>.<<t24>>.<<t20>>
gitleaks-heroku-v2 | HRKU-AA<<w58>>
gitleaks-hf-org | api_org_<<t34>>
gitleaks-infracost | ico-<<t32>>
gitleaks-intra42 | s-s4t2ud-<<x64>>
gitleaks-linear | lin_api_<<t40>>
gitleaks-lob | lob_key = "live_<<x35>>"
gitleaks-maxmind | <<t6>>_<<t29>>_mmk
gitleaks-teams | https://acme.webhook.office.com/webhookb2/<<x8>>-<<x4>>-<<x4>>-<<x4>>-<<x12>>@<<x8>>-<<x4>>-<<x4>>-<<x4>>-<<x12>>/IncomingWebhook/<<x32>>/<<x8>>-<<x4>>-<<x4>>-<<x4>>-<<x12>>
gitleaks-new-relic | NRAK-<<u27>>
gitleaks-notion | ntn_<<d11>><<t35>>
gitleaks-nuget | <add key="Password" value="<<pw>>" />
gitleaks-perplexity | pplx-<<t48>>
gitleaks-plaid | access-sandbox-<<x8>>-<<x4>>-<<x4>>-<<x4>>-<<x12>>
gitleaks-planetscale | pscale_tkn_<<w43>>
gitleaks-postman | PMAK-<<x24>>-<<x34>>
gitleaks-prefect | pnu_<<t36>>
gitleaks-pulumi | pul-<<x40>>
gitleaks-readme | rdme_<<l70>>
gitleaks-rubygems | rubygems_<<x48>>
gitleaks-scalingo | tk-us-<<w48>>
gitleaks-sentry-org | sntrys_eyJpYXQiO<<t120>>_<<t43>>
gitleaks-sentry-user | sntryu_<<x64>>
gitleaks-settlemint | sm_pat_<<t16>>
gitleaks-shippo | shippo_live_<<x40>>
gitleaks-shopify-shared | shpss_<<x32>>
gitleaks-slack-app | xapp-1-A<<u10>>-<<d13>>-<<l64>>
gitleaks-slack-config | xoxe.xoxb-1-<<u163>>
gitleaks-slack-user | xoxp-<<d12>>-<<d12>>-<<d12>>-<<t30>>
gitleaks-square | sq0atp-<<w22>>
gitleaks-stripe-restricted | rk_test_<<t24>>
gitleaks-typeform | typeform = "tfp_<<w59>>"
gitleaks-vault-batch | hvb.<<w140>>
gitleaks-vault-old | s.<<t24>>
gitleaks-yandex | yandex: AQVN<<w36>>
gitleaks-curl-header | curl https://x.test -H "Authorization: Token <<x40>>"
gitleaks-sidekiq | https://ab12cd34:<<x8>>@gems.contribsys.com/
gitleaks-adafruit | adafruit_api = '<<l32>>'
gitleaks-algolia | algolia_api = '<<l40>>'
gitleaks-alibaba | alibaba_api = '<<l32>>'
gitleaks-asana | asana_api = '<<l40>>'
gitleaks-atlassian | atlassian_api = '<<l32>>'
gitleaks-beamer | beamer_api = '<<l40>>'
gitleaks-bitbucket | bitbucket_api = '<<l32>>'
gitleaks-bittrex | bittrex_api = '<<l40>>'
gitleaks-codecov | codecov_api = '<<l32>>'
gitleaks-cohere | cohere_api = '<<l40>>'
gitleaks-coinbase | coinbase_api = '<<l32>>'
gitleaks-confluent | confluent_api = '<<l40>>'
gitleaks-contentful | contentful_api = '<<l32>>'
gitleaks-datadog | datadog_api = '<<l40>>'
gitleaks-discord | discord_api = '<<l32>>'
gitleaks-droneci | droneci_api = '<<l40>>'
gitleaks-etsy | etsy_api = '<<l32>>'
gitleaks-fastly | fastly_api = '<<l40>>'
gitleaks-finicity | finicity_api = '<<l32>>'
gitleaks-finnhub | finnhub_api = '<<l40>>'
gitleaks-flickr | flickr_api = '<<l32>>'
gitleaks-freshbooks | freshbooks_api = '<<l40>>'
gitleaks-gitter | gitter_api = '<<l32>>'
gitleaks-hubspot | hubspot_api = '<<l40>>'
gitleaks-intercom | intercom_api = '<<l32>>'
gitleaks-jfrog | jfrog_api = '<<l40>>'
gitleaks-kraken | kraken_api = '<<l32>>'
gitleaks-kucoin | kucoin_api = '<<l40>>'
gitleaks-launchdarkly | launchdarkly_api = '<<l32>>'
gitleaks-linkedin | linkedin_api = '<<l40>>'
gitleaks-looker | looker_api = '<<l32>>'
gitleaks-mailgun | mailgun_api = '<<l40>>'
gitleaks-mapbox | mapbox_api = '<<l32>>'
gitleaks-mattermost | mattermost_api = '<<l40>>'
gitleaks-messagebird | messagebird_api = '<<l32>>'
gitleaks-netlify | netlify_api = '<<l40>>'
gitleaks-nytimes | nytimes_api = '<<l32>>'
gitleaks-okta | okta_api = '<<l40>>'
gitleaks-rapidapi | rapidapi_api = '<<l32>>'
gitleaks-sendbird | sendbird_api = '<<l40>>'
gitleaks-snyk | snyk_api = '<<l32>>'
gitleaks-sonar | sonar_api = '<<l40>>'
gitleaks-squarespace | squarespace_api = '<<l32>>'
gitleaks-sumologic | sumologic_api = '<<l40>>'
gitleaks-travis | travis_api = '<<l32>>'
gitleaks-twitch | twitch_api = '<<l40>>'
gitleaks-twitter | twitter_api = '<<l32>>'
gitleaks-yandex | yandex_api = '<<l40>>'
gitleaks-zendesk | zendesk_api = '<<l32>>'
"""


def templates() -> dict[str, str]:
    """Each template by its name."""
    found = {}
    for line in TEMPLATES.strip().splitlines():
        name, _, template = line.partition(" | ")
        found[name] = template.replace("\\\\", "\0").replace("\\n", "\n").replace("\\t", "\t").replace("\0", "\\")
    return found


def pem(rng: random.Random, label: str = "RSA ") -> tuple[str, list[str]]:
    """A private key, and lines of its body."""
    head = "MIIEowIBAAKCAQEA" if label else "MIIEvQIBADANBgkq"
    lines = [secret(rng, "b64") for _ in range(8)]
    lines[0] = head + lines[0][16:]
    last = secret(rng, "b30") + "=="
    body = "\n".join([*lines, last])
    return f"-----BEGIN {label}PRIVATE KEY-----\n{body}\n-----END {label}PRIVATE KEY-----", [*lines, last]


def _number(text: str, form: str) -> str:
    return "\n".join(form.format(n=n, line=line) for n, line in enumerate(text.split("\n"), 1))


def _b64(text: str, wrap: int = 0) -> str:
    plain = base64.b64encode(text.encode()).decode()
    return plain if not wrap else "\n".join(plain[i : i + wrap] for i in range(0, len(plain), wrap))


def _wrap(text: str, width: int) -> str:
    return "\n".join(text[i : i + width] for i in range(0, len(text), width))


def _keys(rng: random.Random) -> dict[str, tuple[str, list[str]]]:
    found: dict[str, tuple[str, list[str]]] = {}
    for label in ("RSA ", "EC ", "OPENSSH ", "", "ENCRYPTED "):
        text, lines = pem(rng, label)
        name = label.strip().lower() or "pkcs8"
        found[f"pem-{name}"] = text, lines
    text, lines = pem(rng)
    body = text.split("\n")
    ways: dict[str, str] = {
        "no-last": "\n".join(body[:-1]),
        "no-first": "\n".join(body[1:]),
        "body-only": "\n".join(body[1:-1]),
        "cut": "\n".join(body[:4]),
        "cut-then-text": "\n".join([*body[:6], "$ ls", "a.txt and more words"]),
        "cat-n": _number(text, "{n:6}\t{line}"),
        "cat-n-no-first": _number("\n".join(body[1:]), "{n:6}\t{line}"),
        "cat-n-no-last": _number("\n".join(body[:-1]), "{n:6}\t{line}"),
        "agent": _number(text, "{n:6}→{line}"),
        "colon": _number(text, "{n}:{line}"),
        "colon-no-first": _number("\n".join(body[1:]), "{n}: {line}"),
        "sed-l": "\n".join(f"{line}$" for line in body),
        "diff": "\n".join(f"+{line}" for line in body),
        "diff-no-last": "\n".join(f"-{line}" for line in body[:-1]),
        "quote": "\n".join(f"> {line}" for line in body),
        "indent": "\n".join(f"    {line}" for line in body),
        "indent-no-last": "key: |\n" + "\n".join(f"    {line}" for line in body[:-1]),
        "concat": " +\n".join(f'"{line}\\n"' for line in body),
        "python": "\n".join(f'    "{line}\\n"' for line in body[:-1]),
        "one-line": " ".join(body),
        "escaped": "\\n".join(body),
        "escaped-no-last": "\\n".join(body[:-1]),
        "crlf": "\r\n".join(body),
        "crlf-no-first": "\r\n".join(body[1:]),
    }
    found |= {f"pem-{way}": (shown, [line for line in lines if line in shown]) for way, shown in ways.items()}
    return found


def _others(rng: random.Random) -> dict[str, tuple[str, list[str]]]:
    found: dict[str, tuple[str, list[str]]] = {}
    for name, template in {
        "password": "password=<<pw>>", "env": "DB_PASSWORD=<<pw>>", "json": '{"password": "<<pw>>"}',
        "yaml": "user: bob\npassword: <<pw>>\n", "key": "key ghp_<<t36>> here", "lines": "export API_TOKEN=<<t40>>\nexport DB_PASSWORD=<<pw>>\n" * 2,
    }.items():  # fmt: skip
        text, _ = fill_template(rng, template)
        found[f"base64-{name}"] = f"data: {_b64(text)}", [_b64(text)[4:20]]
    text, _ = fill_template(rng, "the password=<<pw>> of the server that is there, and more of it " * 3)
    found["base64-wrapped"] = _b64(text, 76), [_b64(text)[20:60]]
    text = base64.b64encode("$password = 'Xk29dkWqz81'".encode("utf-16-le")).decode()
    found["base64-powershell"] = f"powershell -EncodedCommand {text}", [text[8:24]]
    for width in (80, 100, 120):
        for name, template in {
            "key": "export OPENAI_API_KEY=sk-proj-<<w130>>", "github": "the token that I use for it is this one: github_pat_<<t22>>_<<t59>>",
            "password": "x" * (width - 30) + " DB_PASSWORD=<<t36>>",
            "jwt": "Authorization: Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.<<w86>>",
        }.items():  # fmt: skip
            text, cores = fill_template(rng, template)
            shown = _wrap(text, width)
            found[f"terminal-{width}-{name}"] = shown, [piece for core in cores for piece in _pieces(core, shown)]
    return found


def _pieces(core: str, shown: str) -> list[str]:
    """Of a secret that was cut: each piece of it that a line holds."""
    whole = shown.replace("\n", "")
    at = whole.index(core)
    pieces, place = [], 0
    for line in shown.split("\n"):
        piece = line[max(0, at - place) : max(0, at + len(core) - place)]
        place += len(line)
        if len(piece) >= 6:
            pieces.append(piece)
    return pieces


def shapes(seed: int) -> dict[str, tuple[str, list[str]]]:
    """Each shape by its name: its text, and what of it must not be told."""
    rng = random.Random(seed)
    found = {name: fill_template(rng, template) for name, template in templates().items()}
    return found | _keys(rng) | _others(rng)


PLACES: dict[str, Callable[[str], str]] = {
    "plain": lambda x: x,
    "between": lambda x: f"Here it is:\n{x}\nand that is all.",
    "json": lambda x: json.dumps({"stdout": f"before\n{x}\nafter"}),
    "json-compact": lambda x: json.dumps([{"a": x}], separators=(",", ":")),
    "json-twice": lambda x: json.dumps({"line": json.dumps({"content": [{"text": x}]})}),
    "python-repr": lambda x: f"result = {x!r}",
    "diff": lambda x: "@@ -1 +1 @@\n" + "\n".join(f"+{line}" for line in x.split("\n")),
    "listing": lambda x: "\n".join(f"{n:6}\t{line}" for n, line in enumerate(x.split("\n"), 1)),
    "fence": lambda x: f"```\n{x}\n```",
    "coloured": lambda x: f"\x1b[32m{x}\x1b[0m",
    "ssh": lambda x: f"$ ssh host\nhost$ {x}\nhost$ exit",
    "log": lambda x: f"2026-11-22T10:00:00Z run[12]: {x}",
}
